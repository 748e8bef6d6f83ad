// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/finish_kernel.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/str_join.h"
#include "compiler/ir/rewrite.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

// How much of a kernel's work an operation usually is; the kernel is named after the greatest.
int Weight(const TensorOp& op) {
  if (const auto* reduce = std::get_if<TensorReduce>(&op.op)) {
    return reduce->monoid == Monoid::kSoftmaxSum ? 3 : 1;
  }
  return std::holds_alternative<TensorContract>(op.op) ? 2 : 0;
}

// {"gate_linear", "up_linear"} -> "gate_up_linear".
std::string Join(const std::vector<std::string>& labels) {
  std::string suffix = labels[0].substr(std::min(labels[0].size(), labels[0].rfind('_')));
  std::string name;
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string stem = labels[i];
    bool shared = i + 1 < labels.size() && !suffix.empty() &&
                  absl::c_all_of(labels, [&](const std::string& label) {
                    return label.size() > suffix.size() && label.ends_with(suffix);
                  });
    if (shared) stem.resize(stem.size() - suffix.size());
    name += (name.empty() ? "" : "_") + stem;
  }
  absl::c_replace(name, '.', '_');
  return name;
}

void AddOnce(std::vector<std::string>& list, const std::string& item) {
  if (!absl::c_linear_search(list, item)) list.push_back(item);
}

void NameFunction(const SegmentValues& values, const TensorOp& sink,
                  const std::vector<std::string>& computed, Function& fn) {
  std::vector<const TensorOp*> ops;
  for (const std::string& value : computed) ops.push_back(values.ops.at(value));
  absl::c_sort(ops, std::less<>());  // they lie in one vector: program order
  int greatest = 0;
  for (const TensorOp* op : ops) greatest = std::max(greatest, Weight(*op));
  std::vector<std::string> named, all;
  for (const TensorOp* op : ops) {
    if (Weight(*op) == greatest) AddOnce(named, op->label);
    AddOnce(all, op->label);
  }
  fn.name = greatest == 0 ? Join({sink.label}) : Join(named);
  fn.computes = absl::StrJoin(all, " + ");
}

}  // namespace

LoopLaunch FinishKernel(const SegmentValues& values, const TensorOp& sink,
                        const std::vector<std::string>& computed, const Block& body) {
  // The value, or "" for the kernel's own names.
  auto outside = [&](const std::string& name) -> std::string {
    if (name[0] != '=') return "";
    return FindOr(values.updated_states, name.substr(1), name.substr(1));
  };
  std::string written = outside(OutsideName(sink.out));
  std::vector<std::string> args;
  WalkExprs(body, [&](const Load& load) {
    std::string value = outside(load.buffer);
    if (!value.empty() && value != written) AddOnce(args, value);
  });
  args.push_back(written);

  LoopLaunch launch;
  launch.args = args;
  Function& fn = launch.fn.fn;
  std::map<std::string, int> counts;
  std::map<std::string, std::string> buffer_of;
  bool updates = written != sink.out;
  for (const std::string& value : args) {
    const SourceDecl::Kind* kind = FindOrNull(values.source_kinds, value);
    static constexpr const char* kStems[] = {"x", "w", "c", "state"};  // by SourceDecl::Kind
    std::string stem = kind ? kStems[static_cast<size_t>(*kind)] : "x";
    const ValueType& type = values.types.at(value);
    const Access access = value != written ? Access::kRead
                          : updates        ? Access::kReadWrite
                                           : Access::kWrite;
    std::string name = access == Access::kWrite ? "y" : stem + std::to_string(counts[stem]++);
    buffer_of[value] = name;
    fn.buffers.push_back({std::move(name), type.dtype, type.shape, access});
  }
  if (!updates) launch.results.emplace_back(sink.out, sink.type);

  fn.body = RenameAll(body, [&](const std::string& name) {
    std::string value = outside(name);
    return value.empty() ? (name[0] == '#' ? name.substr(1) : name) : buffer_of.at(value);
  });
  fn.symbols = values.symbols;
  DropUnusedSymbols(fn);
  NameFunction(values, sink, computed, fn);
  return launch;
}

}  // namespace hackc::passes

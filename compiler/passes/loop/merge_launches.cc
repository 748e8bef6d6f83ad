// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/merge_launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/rewrite.h"
#include "compiler/passes/loop/fusion_cost.h"
#include "compiler/support/cat.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

// Elements that one iteration of the shared loops may compute: some rounds of one block.
constexpr int64_t kMostElements = 16384;

// Iterations of all loops of `block`, which holds loops, lets and stores; absent for anything else
// and for extents that are not static.
std::optional<int64_t> ElementsOf(const Block& block) {
  int64_t total = 0;
  for (const Stmt& stmt : block) {
    if (const auto* loop = As<For>(stmt)) {
      auto extent = AsInt(loop->extent);
      auto inner = ElementsOf(loop->body);
      if (!extent || !inner || *inner > kMostElements) return std::nullopt;
      total += *extent * std::max<int64_t>(*inner, 1);
    } else if (!As<Let>(stmt) && !As<Store>(stmt)) {
      return std::nullopt;
    }
  }
  return total;
}

// `b` after `a`, or absent.
class Merger {
 public:
  Merger(const LoopLaunch& a, const LoopLaunch& b) : a_(a), b_(b), merged_(a) {}

  std::optional<LoopLaunch> Run() {
    if (!SideBySide()) return std::nullopt;
    TakeNames();
    Function& fn = merged_.fn.fn;
    bool symbolic = false;
    const Block renamed = RenameAll(b_.fn.fn.body, [&](const std::string& name) {
      const auto [known, is_new] = renamed_.try_emplace(name);
      if (is_new) known->second = Fresh(name);
      return known->second;
    });
    fn.body = Join(fn.body, renamed, symbolic);
    if (!symbolic || fn.body.size() != 1) return std::nullopt;
    const Block* inner = &fn.body;
    while (inner->size() == 1 && As<For>(inner->front())) inner = &As<For>(inner->front())->body;
    auto elements = ElementsOf(*inner);
    if (!elements || *elements > kMostElements) return std::nullopt;
    for (const SymbolDecl& symbol : b_.fn.fn.symbols) {
      if (!absl::c_linear_search(fn.symbols, symbol)) fn.symbols.push_back(symbol);
    }
    fn.name = Cat(a_.fn.fn.name, "_", b_.fn.fn.name);
    fn.computes = Cat(a_.fn.fn.computes, " + ", b_.fn.fn.computes);
    merged_.results.insert(merged_.results.end(), b_.results.begin(), b_.results.end());
    if (!CostsNoMore({&fn}, {&a_.fn.fn, &b_.fn.fn})) return std::nullopt;
    return std::move(merged_);
  }

 private:
  // Something is read by both, and nothing that one writes is touched by the other.
  bool SideBySide() const {
    bool common = false;
    for (size_t i = 0; i < a_.args.size(); ++i) {
      for (size_t k = 0; k < b_.args.size(); ++k) {
        if (a_.args[i] != b_.args[k]) continue;
        if (a_.fn.fn.buffers[i].access != Access::kRead) return false;
        if (b_.fn.fn.buffers[k].access != Access::kRead) return false;
        common = true;
      }
    }
    return common;
  }

  // Names of `b` in the merged kernel: its buffers are those of the same values, all else gets new
  // names.
  void TakeNames() {
    Function& fn = merged_.fn.fn;
    used_ = NamesIn(fn.body);
    for (const BufferDecl& buffer : fn.buffers) used_.insert(buffer.name);
    for (size_t k = 0; k < b_.args.size(); ++k) {
      BufferDecl buffer = b_.fn.fn.buffers[k];
      auto same = absl::c_find(a_.args, b_.args[k]);
      if (same != a_.args.end()) {
        renamed_[buffer.name] = a_.fn.fn.buffers[same - a_.args.begin()].name;
        continue;
      }
      buffer.name = renamed_[buffer.name] = Fresh(buffer.name);
      fn.buffers.push_back(std::move(buffer));
      merged_.args.push_back(b_.args[k]);
    }
  }

  // h -> h2, state0 -> state1, where the name is taken.
  std::string Fresh(const std::string& name) {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    int number = digits < name.size() ? std::stoi(name.substr(digits)) + 1 : 2;
    std::string fresh = name;
    while (!used_.insert(fresh).second) fresh = Cat(name.substr(0, digits), number++);
    return fresh;
  }

  // Both bodies in one, under the loops that they have in common.
  static Block Join(const Block& a, const Block& b, bool& symbolic) {
    const For* first = a.size() == 1 ? As<For>(a.front()) : nullptr;
    const For* second = b.size() == 1 ? As<For>(b.front()) : nullptr;
    // Static loops differ between the two, or are the work of one block.
    bool shared = first && second && Equal(first->extent, second->extent) && !AsInt(first->extent);
    if (!shared) {
      // A kernel merged before has several loops here already.
      Block both = a;
      both.insert(both.end(), b.begin(), b.end());
      return both;
    }
    symbolic = true;
    For loop = *first;
    loop.body =
        Join(first->body, SubstituteVars(second->body, second->axis, Axis(first->axis)), symbolic);
    return {MakeStmt(std::move(loop))};
  }

  const LoopLaunch& a_;
  const LoopLaunch& b_;
  LoopLaunch merged_;
  std::set<std::string> used_;
  std::map<std::string, std::string> renamed_;  // names of `b`
};

}  // namespace

LoopModule MergeLaunches(const LoopModule& module) {
  LoopModule result = module;
  for (LoopSegment& segment : result.segments) {
    std::vector<LoopLaunch> launches;
    for (LoopLaunch& launch : segment.ops) {
      auto merged = launches.empty() ? std::nullopt : Merger(launches.back(), launch).Run();
      if (merged) {
        launches.back() = *std::move(merged);
      } else {
        launches.push_back(std::move(launch));
      }
    }
    segment.ops = std::move(launches);
  }
  return result;
}

}  // namespace hackc::passes

// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/lower_tensor.h"

#include "compiler/ir/rewrite.h"
#include "compiler/passes/loop/fusion_cost.h"
#include "compiler/passes/loop/loop_builder.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

using Kernels = std::map<std::string, LoopLaunch>;  // by sink

// The columns of a streaming softmax lie over threads as its values do; a sum over them in the same
// kernel would need them to lie in another way, and a second softmax, or a sum for each of its
// values, would need loops of its own.
bool StreamsBadly(const Function& fn) {
  std::set<std::string> softmax, summed, sums;  // sums: states, and lets that are made of them
  bool found = false;
  const auto of_sums = [&](const Expr& e) {
    return absl::c_any_of(FreeVars(e), [&](const auto& name) { return sums.contains(name); });
  };
  WalkStmts(
      fn.body,
      [&](const Accumulator& acc) {
        sums.insert(acc.name);
        if (acc.monoid == Monoid::kSoftmaxSum) softmax.insert(acc.name);
      },
      [&](const Let& let) {
        if (of_sums(let.value)) sums.insert(let.name);
      },
      [&](const Accumulate& update) {
        found |= softmax.contains(update.name) && of_sums(update.operands[1]);
      },
      [&](const For& loop) {
        if (loop.role != AxisRole::kFree) summed.insert(loop.axis);
      });
  WalkExprs(fn.body, [&](const Load& load) {
    if (!softmax.contains(load.buffer)) return;
    for (const Expr& index : load.indices)
      Walk(index, [&](const Var& var) { found |= summed.contains(var.name); });
  });
  return found || softmax.size() > 1;
}

class SegmentFusion {
 public:
  SegmentFusion(const SegmentValues& values, const TensorSegment& segment)
      : values_(values), segment_(segment) {
    for (const TensorOp& op : segment.ops) {
      for (const std::string& value : ValuesRead(op)) {
        if (values.ops.contains(value)) readers_[value].push_back(&op);
      }
      if (DependsOnWeightsOnly(op)) prepared_.insert(op.out);
    }
  }

  std::vector<LoopLaunch> Run() {
    for (auto op = segment_.ops.rbegin(); op != segment_.ops.rend(); ++op) Decide(*op);
    std::vector<LoopLaunch> launches;
    for (const TensorOp& op : segment_.ops) {
      if (!fused_.contains(op.out)) launches.push_back(kernels_.at(op.out));
    }
    return launches;
  }

 private:
  bool DependsOnWeightsOnly(const TensorOp& op) const {
    const bool fixed = absl::c_all_of(op.type.shape, [](const Expr& e) { return !!AsInt(e); });
    const std::vector<std::string> read = ValuesRead(op);
    return fixed && !read.empty() && absl::c_all_of(read, [&](const std::string& value) {
             const SourceDecl::Kind* kind = FindOrNull(values_.source_kinds, value);
             return prepared_.contains(value) || (kind && (*kind == SourceDecl::Kind::kWeight ||
                                                           *kind == SourceDecl::Kind::kConstant));
           });
  }

  bool MustReachMemory(const TensorOp& op) const {
    const auto& yields = segment_.yields;
    return std::holds_alternative<TensorScatter>(op.op) || prepared_.contains(op.out) ||
           !readers_.contains(op.out) || absl::c_linear_search(yields, op.out);
  }

  // Kernels that compute something from `op`, given what is fused so far.
  std::set<std::string> SinksReading(const TensorOp& op) const {
    std::set<std::string> sinks;
    for (const TensorOp* reader : readers_.at(op.out)) {
      if (fused_.contains(reader->out)) {
        sinks.merge(SinksReading(*reader));
      } else {
        sinks.insert(reader->out);
      }
    }
    return sinks;
  }

  // Whether `op` is what a sum goes into: a map of it that nothing else is made of. In a kernel of
  // its own it costs no more bytes than fused into several, but then the sum would be written.
  bool FinishesASum(const TensorOp& op) const {
    if (!std::holds_alternative<TensorMap>(op.op)) return false;
    return absl::c_any_of(ValuesRead(op), [&](const std::string& value) {
      const TensorOp* read = FindOr(values_.ops, value);
      if (!read || MustReachMemory(*read) || readers_.at(value).size() > 1) return false;
      if (!absl::c_equal(read->type.shape, op.type.shape, ExprEqual())) return false;
      return !ReducedAxes(*read).empty() || FinishesASum(*read);
    });
  }

  void Decide(const TensorOp& op) {
    std::optional<LoopLaunch> own = BuildKernel(values_, op.out, fused_);
    HACKC_CHECK(own.has_value()) << "cannot write a kernel for %" << op.out;
    if (MustReachMemory(op) || !TryToFuse(op, *own)) kernels_[op.out] = *std::move(own);
  }

  bool TryToFuse(const TensorOp& op, const LoopLaunch& own) {
    std::set<std::string> fused = fused_;
    fused.insert(op.out);
    Kernels joined;
    std::vector<const Function*> before = {&own.fn.fn}, after;
    const std::set<std::string> sinks = SinksReading(op);
    if (sinks.size() > 1 && FinishesASum(op)) return false;
    for (const std::string& sink : sinks) {
      std::optional<LoopLaunch> kernel = BuildKernel(values_, sink, fused);
      if (!kernel || StreamsBadly(kernel->fn.fn)) return false;
      before.push_back(&kernels_.at(sink).fn.fn);
      after.push_back(&joined.emplace(sink, *std::move(kernel)).first->second.fn.fn);
    }
    if (!CostsNoMore(after, before)) return false;
    fused_ = std::move(fused);
    for (auto& [sink, kernel] : joined) kernels_[sink] = std::move(kernel);
    return true;
  }

  const SegmentValues& values_;
  const TensorSegment& segment_;
  std::map<std::string, std::vector<const TensorOp*>> readers_;
  std::set<std::string> prepared_;  // depends on weights only
  std::set<std::string> fused_;
  Kernels kernels_;  // of the sinks so far, with what is fused so far
};

void AddSources(const std::vector<SourceDecl>& sources, SegmentValues& values) {
  for (const SourceDecl& source : sources) {
    values.types[source.name] = source.type;
    values.source_kinds[source.name] = source.kind;
  }
}

}  // namespace

LoopModule LowerTensor(const TensorModule& module) {
  LoopModule result{module.name, module.symbols, module.sources, {}, module.outputs};
  SegmentValues values;
  values.symbols = module.symbols;
  AddSources(module.sources, values);
  for (const TensorSegment& segment : module.segments) {
    AddSources(segment.sources, values);
    for (const Carry& carry : segment.carries)
      values.types[carry.name] = values.types.at(carry.initial);
    values.ops.clear();
    for (const TensorOp& op : segment.ops) {
      values.types[op.out] = op.type;
      values.ops[op.out] = &op;
      if (const auto* scatter = std::get_if<TensorScatter>(&op.op)) {
        values.updated_states[op.out] =
            FindOr(values.updated_states, scatter->state, scatter->state);
      }
    }
    LoopSegment loops{segment};
    loops.ops = SegmentFusion(values, segment).Run();
    for (size_t i = 0; i < segment.results.size(); ++i) {
      values.types[segment.results[i]] = values.types.at(segment.yields[i]);
    }
    result.segments.push_back(std::move(loops));
  }
  return result;
}

}  // namespace hackc::passes

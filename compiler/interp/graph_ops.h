// SPDX-License-Identifier: MIT
// What each Graph operation computes: operands and the zeroed output in, values out, float64 throughout.
//
//   GraphEvaluator evaluator{operands_by_name, past, output};
//   std::visit(evaluator, op.op);
//
// Thread safety: one evaluator, one thread.
#pragma once

#include <functional>
#include <string>

#include "compiler/interp/tensor_data.h"
#include "compiler/ir/graph.h"

namespace hackc::interp {

struct GraphEvaluator {
  std::function<TensorData&(const std::string& name)> value;  // an operand; a state may be written
  int64_t past = 0;
  TensorData& out;  // has its dtype and shape, and zeros

  void operator()(const ir::GraphEmbedding& op);
  void operator()(const ir::GraphLinear& op);
  void operator()(const ir::GraphRmsNorm& op);
  void operator()(const ir::GraphLayerNorm& op);
  void operator()(const ir::GraphRotaryTable& op);
  void operator()(const ir::GraphRope& op);
  void operator()(const ir::GraphSplitHeads& op);
  void operator()(const ir::GraphMergeHeads& op);
  void operator()(const ir::GraphAttention& op);
  void operator()(const ir::GraphCacheAppend& op);
  void operator()(const ir::GraphActivation& op);
  void operator()(const ir::GraphMultiply& op);
  void operator()(const ir::GraphAdd& op);
  void operator()(const ir::GraphScale& op);
  void operator()(const ir::GraphSoftcap& op);
  void operator()(const ir::GraphConcat& op);

 private:
  void Pointwise(const std::string& x, const std::function<double(double)>& function);
};

}  // namespace hackc::interp

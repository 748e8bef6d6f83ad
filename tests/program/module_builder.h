// SPDX-License-Identifier: MIT
// Loop modules for tests, one line for a launch. A launch's loops only say which buffers it touches
// and which operation it is; nothing here computes.
//
//   segment.ops.push_back(Launch("norm", {{"x", Rows(8)}}, {{"h", Rows(8)}}));
//
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/loop_module.h"
#include "compiler/program/program_builder.h"

namespace hackc::program {

// The program of one module, with the one entry point "prefill".
inline ProgramPlan PrefillProgram(const ir::LoopModule& module) {
  return BuildProgram({{"prefill", module}}, "sm_90a");
}

using NamedType = std::pair<std::string, ir::ValueType>;

inline ir::ValueType Rows(int64_t width) {
  return {ir::DType::kF32, {ir::MakeSymbol("seq"), ir::IntLit(width)}};
}
inline ir::ValueType Static(int64_t rows, int64_t width) {
  return {ir::DType::kF32, {ir::IntLit(rows), ir::IntLit(width)}};
}

inline ir::LoopLaunch Launch(const std::string& operation, const std::vector<NamedType>& reads,
                             const std::vector<NamedType>& writes) {
  ir::LoopLaunch launch;
  launch.fn.fn.name = operation;
  launch.fn.fn.computes = "test of " + operation;
  launch.fn.fn.symbols = {{"seq", 1, 64}};
  ir::Expr value =
      ir::MakeUnary(ir::UnaryOp::kExp, ir::FloatLit(static_cast<double>(operation.size())));
  for (char c : operation)
    value = value + ir::FloatLit(c);  // the operation's name decides the text
  std::vector<ir::Expr> origin = {ir::IntLit(0), ir::IntLit(0)};
  for (size_t i = 0; i < reads.size(); ++i) {
    std::string name = "x" + std::to_string(i);
    launch.fn.fn.buffers.push_back(
        {name, reads[i].second.dtype, reads[i].second.shape, ir::Access::kRead});
    launch.args.push_back(reads[i].first);
    value = value + ir::MakeLoad(name, reads[i].second.dtype, origin);
  }
  for (size_t i = 0; i < writes.size(); ++i) {
    std::string name = "y" + std::to_string(i);
    launch.fn.fn.buffers.push_back(
        {name, writes[i].second.dtype, writes[i].second.shape, ir::Access::kWrite});
    launch.args.push_back(writes[i].first);
    launch.results.push_back(writes[i]);
    launch.fn.fn.body.push_back(ir::MakeStmt(ir::Store{name, origin, value}));
  }
  return launch;
}

inline ir::SourceDecl Source(ir::SourceDecl::Kind kind, std::string name, ir::ValueType type,
                             std::string weight_name = "") {
  return {std::move(name), kind, std::move(type), std::move(weight_name), {}};
}

}  // namespace hackc::program

// SPDX-License-Identifier: MIT
#include "compiler/program/kernel_contract.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/algorithm/container.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/program/dim_expr.h"
#include "compiler/program/traffic.h"
#include "compiler/support/internal_error.h"

namespace hackc::program {
namespace {

// By ir::DType.
constexpr DType kDTypes[] = {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16,
                             DType::kInt64,   DType::kInt32,   DType::kBool};

// Widest access to each buffer, in bytes.
std::map<std::string, uint32_t> WidestAccesses(const ir::KernelFn& kernel) {
  std::map<std::string, uint32_t> widest;
  auto note = [&](const std::string& name, int elements, int bytes) {
    const auto* buffer = FindBy(kernel.fn.buffers, &ir::BufferDecl::name, name);
    if (buffer == nullptr) return;  // the block's own memory
    bytes += elements * ir::SizeOf(buffer->dtype);
    widest[name] = std::max(widest[name], static_cast<uint32_t>(bytes));
  };
  for (const ir::BufferDecl& buffer : kernel.fn.buffers) note(buffer.name, 1, 0);
  ir::WalkStmts(
      kernel.fn.body, [&](const ir::VectorLoad& load) { note(load.source, load.width, 0); },
      [&](const ir::VectorStore& store) { note(store.target, store.width, 0); },
      [&](const ir::AsyncCopy& copy) { note(copy.source, 0, copy.bytes); });
  return widest;
}

}  // namespace

DType FromIr(ir::DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

std::optional<ir::DType> ToIr(DType dtype) {
  const auto at = absl::c_find(kDTypes, dtype) - std::begin(kDTypes);
  if (at == std::size(kDTypes)) return std::nullopt;
  return static_cast<ir::DType>(at);
}

std::vector<Symbol> FromIr(const std::vector<ir::SymbolDecl>& symbols) {
  std::vector<Symbol> result;
  for (const ir::SymbolDecl& s : symbols) result.push_back({s.name, s.min, s.max});
  return result;
}

Kernel MakeContract(const ir::LoopFn& loop, const ir::KernelFn& kernel, const std::string& entry,
                    const std::string& arch) {
  Kernel contract{.name = kernel.fn.name,
                  .computes = kernel.fn.computes,
                  .entry = entry,
                  .arch = arch,
                  .valid = FromIr(kernel.fn.symbols)};
  uint32_t offset = 0;
  auto add = [&](Param param) {
    param.offset = offset;
    offset += param.size;
    contract.params.push_back(std::move(param));
  };
  std::map<std::string, uint32_t> widest = WidestAccesses(kernel);
  for (const ir::BufferDecl& buffer : kernel.fn.buffers) {
    add({.kind = Param::Kind::kBuffer,
         .name = buffer.name,
         .size = 8,
         .alignment = widest[buffer.name],
         .written = buffer.access != ir::Access::kRead});
  }
  for (const ir::SymbolDecl& symbol : kernel.fn.symbols) {
    add({.kind = Param::Kind::kSymbolI32, .name = symbol.name, .size = 4, .symbol = symbol.name});
  }
  HACKC_CHECK(kernel.grid.size() == contract.grid.size()) << kernel.fn.name;
  for (size_t i = 0; i < contract.grid.size(); ++i) contract.grid[i] = FromExpr(kernel.grid[i]);
  contract.block[0] = static_cast<uint32_t>(kernel.threads);
  contract.cluster[0] = static_cast<uint32_t>(kernel.cluster);
  contract.dynamic_shared_bytes =
      static_cast<uint32_t>(ir::LayoutShared(kernel.fn.body).total_bytes);
  Traffic traffic = TrafficOf(loop);
  contract.bytes_moved = std::move(traffic.bytes_moved);
  contract.operations = std::move(traffic.operations);
  return contract;
}

}  // namespace hackc::program

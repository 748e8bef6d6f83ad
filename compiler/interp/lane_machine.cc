// SPDX-License-Identifier: MIT
// The statement interpreter behind loop_interpreter.h, tile_interpreter.h and kernel_interpreter.h.
// Names are resolved once; then each statement runs for all active lanes before the next one
// starts. An `if` or a guard narrows the active lanes, a loop runs while any lane has iterations
// left.
#include <numeric>
#include <optional>
#include <string>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/lane_code.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/status_macros.h"

namespace hackc::interp {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 24;

struct LaneLaunch {
  std::string_view level;      // "kernel", for messages
  int lanes = 1;               // threads of a block
  std::vector<ir::Expr> grid;  // three extents over symbols, or none: one block
  bool traced = false;         // look for races
  bool reverse_blocks = false;
  uint32_t schedule_seed = 0;
  const std::vector<ir::BulkMap>* maps = nullptr;
};

absl::Status CheckSymbols(const ir::Function& fn, const FunctionRun& run) {
  for (const ir::SymbolDecl& symbol : fn.symbols) {
    auto it = run.symbols.find(symbol.name);
    if (it == run.symbols.end())
      return absl::InvalidArgumentError(Cat(fn.name, ": symbol ", symbol.name, " has no value"));
    if (it->second < symbol.min || it->second > symbol.max) {
      return absl::InvalidArgumentError(Cat(fn.name, ": symbol ", symbol.name, " = ", it->second,
                                            " is outside ", symbol.min, "..", symbol.max));
    }
  }
  return absl::OkStatus();
}

class Machine {
 public:
  Machine(const ir::Function& fn, const LaneLaunch& launch, FunctionRun& run)
      : fn_(fn), launch_(launch), run_(run) {
    state_.lanes = launch.lanes;
    state_.traced = launch.traced;
    state_.arithmetic = run.arithmetic;
    names_.symbols = run.symbols;
    if (NeedsWarps(fn.body)) {
      state_.warps = &warps_.emplace(launch.lanes, launch.schedule_seed);
    }
  }

  absl::Status Run() {
    HACKC_RETURN_IF_ERROR(CheckSymbols(fn_, run_));
    LaneCode code(state_, names_, fn_.body);
    try {
      for (const ir::BufferDecl& buffer : fn_.buffers) HACKC_RETURN_IF_ERROR(Bind(buffer));
      for (int kind = 0; kind < 4; ++kind) {
        names_.builtin_slots[kind] =
            code.AddSlot("", kind != static_cast<int>(ir::BuiltinKind::kThread));
      }
      const size_t buffers = state_.memories.size();
      if (launch_.maps) {
        for (const ir::BulkMap& map : *launch_.maps) code.AddMap(map.name, BindMap(map));
      }
      LaneBlock body = code.Compile(fn_.body);
      Active all(state_.lanes);
      std::iota(all.begin(), all.end(), 0);
      for (int lane : all) Slot(ir::BuiltinKind::kThread)[lane].i = lane;
      int64_t grid[3] = {1, 1, 1};
      for (size_t i = 0; i < launch_.grid.size() && i < 3; ++i) grid[i] = Constant(launch_.grid[i]);
      if (grid[0] < 0 || grid[1] < 0 || grid[2] < 0 ||
          static_cast<__int128>(grid[0]) * grid[1] > kMaxBlocks ||
          static_cast<__int128>(grid[0] * grid[1]) * grid[2] > kMaxBlocks) {
        Fail("a grid of ", grid[0], " x ", grid[1], " x ", grid[2], " blocks");
      }
      const int blocks = static_cast<int>(grid[0] * grid[1] * grid[2]);
      for (int i = 0; i < blocks; ++i) {
        const int block = launch_.reverse_blocks ? blocks - 1 - i : i;
        Slot(ir::BuiltinKind::kBlockX)[0].i = block % grid[0];
        Slot(ir::BuiltinKind::kBlockY)[0].i = block / grid[0] % grid[1];
        Slot(ir::BuiltinKind::kBlockZ)[0].i = block / grid[0] / grid[1];
        state_.block = block;
        ++state_.epoch;
        for (size_t j = buffers; j < state_.memories.size(); ++j) state_.memories[j].StartBlock();
        code.StartBlock();
        code.RunBlock(body, all);
      }
    } catch (const Failure& failure) {
      std::string path = Cat(launch_.level, " ", fn_.name);
      for (const ir::StmtNode* node : code.path()) path += " / " + ir::PathName(*node);
      return absl::FailedPreconditionError(Cat(path, ": ", failure.message));
    }
    Publish();
    return absl::OkStatus();
  }

 private:
  std::vector<Cell>& Slot(ir::BuiltinKind kind) {
    return state_.slots[names_.builtin_slots[static_cast<int>(kind)]];
  }

  int64_t Constant(const ir::Expr& e) {
    auto code = LaneExpr::Compile(e, names_, state_);
    if (!code || !code->uniform() || code->is_float())
      Fail("`", Print(e), "` is not an integer over symbols");
    return code->Eval(state_, {0})[0].i;
  }

  absl::Status Bind(const ir::BufferDecl& buffer) {
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer.shape) shape.push_back(Constant(extent));
    const bool traced = launch_.traced && buffer.access != ir::Access::kRead;
    state_.memories.emplace_back(buffer.name, buffer.dtype, LaneMemory::Space::kGlobal, shape, 0, 1,
                                 traced);
    LaneMemory& memory = state_.memories.back();
    memory.set_access(buffer.access);
    if (state_.warps) memory.TraceWarps(state_.lanes);
    const int index = static_cast<int>(state_.memories.size()) - 1;
    names_.bindings[buffer.name] = {Names::Binding::Kind::kMemory, index, false};
    if (buffer.access == ir::Access::kWrite) return absl::OkStatus();
    auto it = run_.buffers.find(buffer.name);
    const std::string want = ShapeText(buffer.dtype, shape);
    if (it == run_.buffers.end()) {
      return absl::InvalidArgumentError(
          Cat(fn_.name, ": buffer @", buffer.name, " ", want, " is not given"));
    }
    const TensorData& data = it->second;
    if (data.dtype != buffer.dtype || data.shape != shape || data.size() != ElementCount(shape)) {
      return absl::InvalidArgumentError(Cat(fn_.name, ": buffer @", buffer.name, " is ", want,
                                            ", given ", ShapeText(data.dtype, data.shape)));
    }
    memory.Fill(data);
    return absl::OkStatus();
  }

  BoundMap BindMap(const ir::BulkMap& map) {
    BoundMap bound{&names_.Memory(state_, map.buffer), {}, {}, map.box, map.swizzle};
    const int size = ir::SizeOf(bound.buffer->dtype());
    for (const ir::Expr& dim : map.dims) bound.dims.push_back(Constant(dim));
    for (const ir::Expr& stride : map.strides) bound.strides.push_back(Constant(stride));
    bound.strides.push_back(1);
    const size_t rank = bound.dims.size();
    if (rank < 1 || rank > 5 || bound.strides.size() != rank || map.box.size() != rank)
      Fail("tensor_map @", map.name, ": dims, strides and box do not go together");
    int64_t last = 0;
    for (size_t i = 0; i < rank; ++i) {
      last += (bound.dims[i] - 1) * bound.strides[i];
      if (i + 1 < rank && bound.strides[i] * size % 16 != 0)
        Fail("tensor_map @", map.name, ": stride ", bound.strides[i], " is not of 16 bytes");
    }
    if (last >= bound.buffer->count())
      Fail("tensor_map @", map.name, " reaches outside @", map.buffer);
    return bound;
  }

  void Publish() {
    for (size_t i = 0; i < fn_.buffers.size(); ++i) {
      if (fn_.buffers[i].access != ir::Access::kRead)
        run_.buffers[fn_.buffers[i].name] = state_.memories[i].Take();
    }
  }

  const ir::Function& fn_;
  const LaneLaunch& launch_;
  FunctionRun& run_;
  LaneState state_;
  Names names_;
  std::optional<WarpBlock> warps_;
};

absl::Status RunLanes(const ir::Function& fn, const LaneLaunch& launch, FunctionRun& run) {
  try {
    return Machine(fn, launch, run).Run();
  } catch (const InternalError& error) {  // what a verifier would have refused
    return absl::InvalidArgumentError(Cat(launch.level, " ", fn.name, ": ", error.what()));
  }
}

}  // namespace

absl::Status RunLoop(const ir::LoopFn& fn, FunctionRun& run) {
  return RunLanes(fn.fn, {.level = "loop"}, run);
}

absl::Status RunTile(const ir::TileFn& fn, FunctionRun& run) {
  return RunLanes(fn.fn, {.level = "tile"}, run);
}

absl::Status RunKernel(const ir::KernelFn& kernel, FunctionRun& run,
                       const KernelRunOptions& options) {
  if (kernel.threads < 1 || kernel.threads > 1024 || kernel.grid.size() != 3) {
    return absl::InvalidArgumentError(Cat("kernel ", kernel.fn.name, ": ", kernel.threads,
                                          " threads, grid rank ", kernel.grid.size(),
                                          "; 1 to 1024 and 3 are possible"));
  }
  if (kernel.threads % 32 != 0 && NeedsWarps(kernel.fn.body)) {
    return absl::InvalidArgumentError(
        Cat("kernel ", kernel.fn.name, ": ", kernel.threads, " threads are not whole warps"));
  }
  return RunLanes(kernel.fn,
                  {.level = "kernel",
                   .lanes = kernel.threads,
                   .grid = kernel.grid,
                   .traced = options.find_races,
                   .reverse_blocks = options.reverse_blocks,
                   .schedule_seed = options.schedule_seed,
                   .maps = &kernel.maps},
                  run);
}

}  // namespace hackc::interp

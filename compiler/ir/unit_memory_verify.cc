// SPDX-License-Identifier: MIT
// What units do to memory: tensor maps, bulk copies, wgmma, atomics.
#include <algorithm>
#include <numeric>

#include "compiler/ir/kernel_checks.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/support/saturate.h"

namespace hackc::ir {
namespace {

bool IsSwizzle(int bytes) { return bytes == 0 || bytes == 32 || bytes == 64 || bytes == 128; }

}  // namespace

int64_t BoxElements(const BulkMap& map) {
  return std::accumulate(map.box.begin(), map.box.end(), int64_t{1}, SaturatedProduct);
}

// ---- bulk copies --------------------------------------------------------------------------------
void KernelChecks::DeclareMaps() {
  std::set<std::string> names;
  const SourceLine launch = line_;
  for (const BulkMap& map : kernel_.maps) {
    line_ = map.line;
    const NameInfo* buffer = Find(map.buffer);
    const auto bad = [&](const auto&... parts) {
      Error("map", "tensor map @", map.name, ": ", parts...);
    };
    if (Find(map.name) || !names.insert(map.name).second) bad("the name is taken");
    if (!buffer || buffer->kind != NameInfo::Kind::kGlobal) {
      bad("@", map.buffer, " is no buffer");
      continue;
    }
    const size_t rank = map.dims.size();
    if (rank < 1 || rank > 5 || map.strides.size() != rank - 1 || map.box.size() != rank) {
      bad(rank, " dims, ", map.strides.size(), " strides, box of ", map.box.size(),
          "; expected 1 to 5, one less, as many");
      continue;
    }
    const int size = SizeOf(buffer->dtype);
    for (int extent : map.box) {
      if (extent < 1 || extent > 256) bad("a box extent of ", extent, ", expected 1 to 256");
    }
    const int row = map.box.back() * size;
    if (!IsSwizzle(map.swizzle)) {
      bad("a swizzle of ", map.swizzle, " bytes, expected 0, 32, 64 or 128");
    } else if (row % 16 != 0 || (map.swizzle != 0 && row != map.swizzle)) {
      bad("a box with rows of ", row, " bytes, expected ",
          map.swizzle != 0 ? Cat("the ", map.swizzle, " of its swizzle")
                           : std::string("a multiple of 16"));
    }
    Expr last = IntLit(0), elements = IntLit(1);
    for (size_t i = 0; i < rank; ++i) {
      Expression(map.dims[i], "dim", DType::kI32);
      if (i + 1 < rank) Expression(map.strides[i], "stride", DType::kI32);
      const Expr stride = i + 1 < rank ? map.strides[i] : IntLit(1);
      if (!map.dims[i] || !stride) break;
      if (i + 1 < rank && !Divides(stride * size, 16))
        bad("stride `", Print(stride), "` is not provably a multiple of 16 bytes");
      if (!prover_.Less(IntLit(0), map.dims[i]) || !prover_.NonNegative(stride))
        bad("dim `", Print(map.dims[i]), "` or its stride is not provably positive");
      last = last + (map.dims[i] - 1) * stride;
    }
    for (const Expr& extent : buffer->extents) elements = elements * extent;
    if (!prover_.Less(last, elements)) bad("it is not provably within @", map.buffer);
  }
  line_ = launch;
}

bool KernelChecks::Reaches(const std::string& name, const std::vector<Expr>& indices,
                           int64_t reach) {
  const Alloc& alloc = *Find(name)->alloc;
  const std::vector<int64_t> strides = Strides(alloc);
  Expr last = IntLit(reach);
  for (size_t i = 0; i < indices.size(); ++i) last = last + indices[i] * strides[i];
  return prover_.Less(last, IntLit(ElementCount(alloc)));
}

void KernelChecks::CheckBox(const std::string& map_name, const std::vector<Expr>& coordinates,
                            const std::string& memory, const std::vector<Expr>& indices,
                            bool load) {
  if (const auto threads = Threads(); !threads || threads->count() != 1) {
    Error("bulk", threads ? Cat(threads->count()) : std::string("unknown"),
          " threads issue the copy, expected one");
  }
  for (const Expr& coordinate : coordinates) Expression(coordinate, "coordinate", DType::kI32);
  const BulkMap* map = FindMap(map_name);
  if (!map) return Error("bulk", "@", map_name, " is no tensor map");
  if (coordinates.size() != map->dims.size())
    return Error("bulk", coordinates.size(), " coordinates, @", map_name, " has ",
                 map->dims.size());
  const NameInfo* buffer = Memory(map->buffer, load, !load);
  const NameInfo* info = Memory(memory, !load, load);
  if (!info || !buffer) return;
  if (!IsIn(MemorySpace::kShared, memory) || info->dtype != buffer->dtype)
    return Error("bulk", "@", memory, " is not shared memory of ", Name(buffer->dtype));
  CheckAccess(memory, indices, 1);
  if (indices.size() != info->extents.size()) return;
  const int64_t elements = BoxElements(*map);
  CheckAligned("bulk", memory, indices,
               IsPowerOfTwo(map->swizzle) ? std::max(128, 8 * map->swizzle) : 128);
  if (!Reaches(memory, indices, elements - 1))
    Error("bulk", "the box of ", elements, " elements is not provably within @", memory);
}

void KernelChecks::CheckUnit(const BulkLoad& n) {
  CheckBox(n.map, n.coordinates, n.target, n.target_indices, true);
  if (Meetings* barriers = UseOf(n.barrier, n.barrier_index))
    barriers->loads.push_back({nest_, 0, Threads().value_or(ThreadSet())});
}

void KernelChecks::CheckUnit(const BulkStore& n) {
  CheckBox(n.map, n.coordinates, n.source, n.source_indices, false);
  stores_.starts.push_back(Here());
}

void KernelChecks::CheckUnit(const BulkWait& n) {
  if (n.pending < 0) Error("bulk", "waits for ", n.pending, " pending groups");
  stores_.waits.push_back(Here());
}

// ---- wgmma --------------------------------------------------------------------------------------
bool KernelChecks::WholeWarpgroups() {
  const std::optional<ThreadSet> threads = Threads();
  bool whole = threads && kernel_.threads >= 128;
  for (int i = 0; whole && i < 1024; ++i) whole = threads->test(i) == threads->test(i / 128 * 128);
  if (!whole) Error("warpgroup", "only a part of a warpgroup gets here");
  return whole;
}

void KernelChecks::CheckUnit(const WgmmaWait& n) {
  WholeWarpgroups();
  if (n.pending < 0 || n.pending > 7) Error("wgmma", n.pending, " pending groups, expected 0 to 7");
}

void KernelChecks::CheckOperand(const std::string& name, const std::vector<Expr>& indices,
                                const OperandLayout& layout, DType dtype, int rows, int depth) {
  const NameInfo* info = Memory(name, true, false);
  CheckAccess(name, indices, layout.swizzle != 0 && layout.major == Major::kK ? depth : 1);
  if (!info || indices.size() != info->extents.size()) return;
  if (!IsIn(MemorySpace::kShared, name) || info->dtype != dtype)
    return Error("wgmma", "@", name, " is not shared memory of ", Name(dtype));
  if (!IsSwizzle(layout.swizzle)) return Error("wgmma", "a swizzle of ", layout.swizzle, " bytes");
  if (layout.leading % 16 != 0 || layout.stride % 16 != 0 || layout.leading < 0 ||
      layout.stride < 0 || layout.leading >= 1 << 18 || layout.stride >= 1 << 18) {
    return Error("wgmma", "strides of ", layout.leading, " and ", layout.stride,
                 " bytes, expected multiples of 16 below 2^18");
  }
  if (layout.swizzle != 0 && layout.stride % (8 * layout.swizzle) != 0)
    return Error("wgmma", "a stride of ", layout.stride, " bytes breaks the swizzle's pattern");
  CheckAligned("wgmma", name, indices, 16);
  if (layout.swizzle != 0) {  // the pattern starts at the rows' beginning; k may start inside a row
    std::vector<Expr> start = indices;
    start.back() = IntLit(0);
    CheckAligned("wgmma", name, start, 8 * layout.swizzle);
    if (info->alloc->extents.back() * SizeOf(dtype) != layout.swizzle || info->alloc->padding != 0)
      Error("wgmma", "rows of @", name, " do not have the ", layout.swizzle,
            " bytes of the swizzle");
  }
  int64_t bytes = 0;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < depth; ++k)
      bytes = std::max(bytes, OperandByte(layout, SizeOf(dtype), row, k));
  }
  if (!Reaches(name, indices, bytes / SizeOf(dtype)))
    Error("wgmma", "the operand's ", bytes + SizeOf(dtype), " bytes are not provably within @",
          name);
}

void KernelChecks::CheckUnit(const Wgmma& n) {
  WholeWarpgroups();
  if (n.dtype != DType::kBF16 && n.dtype != DType::kF16 && n.dtype != DType::kF32)
    return Error("wgmma", Name(n.dtype), " operands");
  if (n.n < 8 || n.n > 256 || n.n % 8 != 0)
    return Error("wgmma", "n = ", n.n, ", expected a multiple of 8 up to 256");
  const bool tf32 = n.dtype == DType::kF32;
  if (tf32 && (n.a_major == Major::kMN || n.b_major == Major::kMN))
    Error("wgmma", "tf32 operands are contiguous in k");
  const NameInfo* c = Registers(n.accumulator, n.accumulator_index, n.n / 2);
  if (c && c->dtype != DType::kF32)
    Error("wgmma", "accumulator @", n.accumulator, " is ", Name(c->dtype));
  Condition(n.reset);
  if (Dependence(n.reset) != Varies::kNever) Error("wgmma", "`reset` differs between threads");
  if (IsIn(MemorySpace::kLocal, n.a)) {
    const NameInfo* a =
        Registers(n.a, n.a_indices.empty() ? nullptr : n.a_indices[0], tf32 ? 4 : 8);
    if (a && a->dtype != n.dtype) Error("wgmma", "a fragment of ", Name(a->dtype));
    if (n.a_major != Major::kK) Error("wgmma", "a fragment has no order of its own");
  } else {
    CheckOperand(n.a, n.a_indices, LayoutOfA(n), n.dtype, 64, DepthOf(n));
  }
  CheckOperand(n.b, n.b_indices, LayoutOfB(n), n.dtype, n.n, DepthOf(n));
}

void KernelChecks::CheckUnit(const AtomicAdd& n) {
  Condition(n.guard);
  prover_.Assume(n.guard);
  const NameInfo* info = Memory(n.buffer, true, true);
  CheckAccess(n.buffer, n.indices, 1);
  Expression(n.value, "value", DType::kF32);
  if (info && (info->dtype != DType::kF32 || info->IsIn(MemorySpace::kLocal)))
    Error("atomic", "@", n.buffer, " is not float32 in global or shared memory");
}

}  // namespace hackc::ir

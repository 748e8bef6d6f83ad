// SPDX-License-Identifier: MIT
#include "compiler/ir/shared_layout.h"

#include <random>

#include "compiler/support/internal_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

Stmt Shared(std::string name, DType dtype, std::vector<int64_t> extents, int padding = 0,
            int alignment = 16) {
  return MakeStmt(Alloc{.name = std::move(name),
                        .dtype = dtype,
                        .space = MemorySpace::kShared,
                        .extents = std::move(extents),
                        .padding = padding,
                        .alignment = alignment});
}

TEST(SharedLayout, RowsArePaddedAndSlotsAligned) {
  Block body = {Shared("a", DType::kBF16, {3, 5}, 1), Shared("b", DType::kF32, {7}),
                Shared("c", DType::kF32, {2, 2, 2}, 2, 128)};
  SharedLayout layout = LayoutShared(body);
  ASSERT_EQ(layout.slots.size(), 3u);
  EXPECT_EQ(layout.Find("a")->offset, 0);
  EXPECT_EQ(layout.Find("a")->bytes, 3 * 6 * 2);
  EXPECT_EQ(layout.Find("b")->offset, 48);
  EXPECT_EQ(layout.Find("b")->bytes, 28);
  EXPECT_EQ(layout.Find("c")->offset, 128);
  EXPECT_EQ(layout.Find("c")->bytes, 2 * 2 * 4 * 4);
  EXPECT_EQ(layout.total_bytes, 128 + 64);
  EXPECT_EQ(layout.alignment, 128);
  EXPECT_EQ(layout.Find("missing"), nullptr);
  EXPECT_THAT(Strides(*layout.Find("c")->alloc), testing::ElementsAre(8, 4, 1));
}

TEST(SharedLayout, SizesBeyond64BitsStayTheLargest) {
  const int64_t huge = int64_t{1} << 40;
  const Block body = {Shared("a", DType::kF32, {huge, huge, huge}, 8),
                      Shared("b", DType::kF32, {4})};
  const SharedLayout layout = LayoutShared(body);
  EXPECT_EQ(layout.Find("a")->bytes, INT64_MAX);
  EXPECT_EQ(layout.total_bytes, INT64_MAX);
  EXPECT_EQ(ElementCount(*layout.Find("a")->alloc), INT64_MAX);
  const Alloc least{.name = "c", .dtype = DType::kF32, .extents = {2, INT64_MIN, 24}};
  EXPECT_THAT(Strides(least), testing::ElementsAre(INT64_MIN, 24, 1));
}

TEST(SharedLayout, FindsAllocationsInLoopsAndBranchesAndSkipsLocals) {
  Stmt local = MakeStmt(Alloc{.name = "r", .space = MemorySpace::kLocal, .extents = {8}});
  Stmt branch = MakeStmt(If{BoolLit(true), {Shared("inner", DType::kF32, {4})}});
  Block body = {local, MakeStmt(For{.axis = "i", .extent = IntLit(2), .body = {branch}})};
  SharedLayout layout = LayoutShared(body);
  ASSERT_EQ(layout.slots.size(), 1u);
  EXPECT_EQ(layout.slots[0].alloc->name, "inner");
  EXPECT_EQ(layout.total_bytes, 16);
}

TEST(SharedLayout, AScalarTakesOneElement) {
  Block body = {Shared("total", DType::kF32, {})};
  EXPECT_EQ(LayoutShared(body).total_bytes, 4);
}

TEST(SharedLayout, AnAlignmentBelowTheElementIsAContradiction) {
  EXPECT_THROW(LayoutShared({Shared("a", DType::kF32, {4}, 0, 2)}), InternalError);
}

TEST(SharedLayout, SlotsNeverOverlapAndEveryElementLiesInside) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    Block body;
    int count = pick(1, 6);
    for (int i = 0; i < count; ++i) {
      std::vector<int64_t> extents(static_cast<size_t>(pick(0, 3)));
      for (int64_t& extent : extents) extent = pick(1, 9);
      body.push_back(Shared("s" + std::to_string(i), pick(0, 1) ? DType::kF32 : DType::kBF16,
                            extents, extents.empty() ? 0 : pick(0, 8), 1 << pick(2, 7)));
    }
    SharedLayout layout = LayoutShared(body);
    int64_t end = 0;
    for (const SharedSlot& slot : layout.slots) {
      EXPECT_GE(slot.offset, end);
      EXPECT_EQ(slot.offset % slot.alloc->alignment, 0);
      int64_t last = 0;
      std::vector<int64_t> strides = Strides(*slot.alloc);
      for (size_t i = 0; i < strides.size(); ++i) last += (slot.alloc->extents[i] - 1) * strides[i];
      EXPECT_LE((last + 1) * SizeOf(slot.alloc->dtype), slot.bytes);
      end = slot.offset + slot.bytes;
    }
    EXPECT_EQ(layout.total_bytes, end);
  }
}

}  // namespace
}  // namespace hackc::ir

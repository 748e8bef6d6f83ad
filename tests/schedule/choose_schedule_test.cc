// SPDX-License-Identifier: MIT
// What is chosen where the form that comes first does not fit. What is chosen elsewhere is in the
// golden files of choose_schedule's passes; that it fits is a law of tests/property.
#include "compiler/schedule/choose_schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/ir/digits.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/schedule/check_schedule.h"
#include "tests/support/golden.h"

namespace hackc::schedule {
namespace {

using ir::LoopKind;

ir::LoopFn Parsed(std::string text, const std::map<std::string, std::string>& names) {
  for (const auto& [name, value] : names) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  }
  auto loop = ir::ParseLoop(text);
  EXPECT_TRUE(loop.ok()) << loop.status() << text;
  return loop.value_or(ir::LoopFn());
}

ir::LoopFn Product(const std::string& rows, const std::string& columns,
                   const std::string& dtype = "bf16") {
  return Parsed(R"(hackc loop 1
fn product "x w" {
  symbol seq in ROWS
  read @x: DTYPE[8, seq, 256]
  read @w: DTYPE[COLUMNS, 256]
  write @y: f32[8, seq, COLUMNS]
  for %b: free in 8 {
    for %m: free in seq {
      for %n: free in COLUMNS {
        acc %sum: sum
        for %k: contract in 256 {
          %sum <- (f32(@x[%b, %m, %k]) * f32(@w[%n, %k]))
        }
        @y[%b, %m, %n] = %sum
      }
    }
  }
}
)",
                {{"ROWS", rows}, {"COLUMNS", columns}, {"DTYPE", dtype}});
}

ir::LoopFn Attention(const std::string& dtype, const std::string& value, const std::string& width) {
  return Parsed(R"(hackc loop 1
fn attention "attention" {
  symbol seq in 1..64
  read @q: DTYPE[seq, WIDTH]
  read @k: DTYPE[seq, WIDTH]
  read @v: VALUE[seq, WIDTH]
  write @y: f32[seq, WIDTH]
  for %s: free in seq {
    acc %o: softmax_sum[WIDTH]
    for %t: reduce in (%s + 1) {
      acc %sum: sum
      for %d: contract in WIDTH {
        %sum <- (f32(@q[%s, %d]) * f32(@k[%t, %d]))
      }
      for %e2: free in WIDTH {
        %o[%e2] <- %sum, f32(DTYPE(@v[%t, %e2]))
      }
    }
    for %e: free in WIDTH {
      @y[%s, %e] = @o[%e]
    }
  }
}
)",
                {{"DTYPE", dtype}, {"VALUE", value}, {"WIDTH", width}});
}

ir::Schedule Chosen(const ir::LoopFn& loop, const std::string& arch = "sm_90a") {
  const Target target = FindTarget(arch).value();
  const auto schedule = ChooseSchedule(loop, target);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  EXPECT_EQ(CheckSchedule(loop, *schedule, target), absl::OkStatus());
  return *schedule;
}

TEST(ChooseSchedule, MillionsOfColumnsAreOnX) {
  const ir::Schedule few = Chosen(Product("1..2048", "8000"));
  EXPECT_EQ(few.Find("m")->outer, LoopKind::kGridX);
  EXPECT_EQ(few.Find("n")->outer, LoopKind::kGridY);
  const ir::Schedule many = Chosen(Product("1..2048", "16000000"));
  EXPECT_EQ(many.Find("m")->outer, LoopKind::kGridY);
  EXPECT_EQ(many.Find("n")->outer, LoopKind::kGridX);
  EXPECT_EQ(many.instruction, ir::MatrixInstruction::kMma);
}

// A tile for the blocks that there are: eight sequences have eight times those of one.
TEST(ChooseSchedule, RowsOfOtherAxesCount) {
  const auto sums = [](const ir::LoopFn& loop) {
    const ir::Schedule schedule = Chosen(loop);
    return TileOf(*schedule.Find("m")) * TileOf(*schedule.Find("n"));
  };
  EXPECT_EQ(sums(Product("128..128", "2048")), 128 * 128);
}

// Sixteen rows of float32 are two blocks' eight, which take the same columns one after the other.
TEST(ChooseSchedule, TwiceAFewRows) {
  const ir::Schedule eight = Chosen(Product("2..8", "4096", "f32"));
  EXPECT_EQ(TileOf(*eight.Find("b")), 8);  // the first of two that are as long
  EXPECT_EQ(eight.Find("n")->outer, LoopKind::kGridX);
  for (const char* rows : {"9..16", "1..16"}) {
    const ir::Schedule sixteen = Chosen(Product(rows, "4096", "f32"));
    EXPECT_EQ(TileOf(*sixteen.Find("m")), 8);
    EXPECT_EQ(sixteen.Find("m")->outer, LoopKind::kGridX);
    EXPECT_EQ(sixteen.Find("n")->outer, LoopKind::kGridY);
    EXPECT_EQ(TileOf(*sixteen.Find("n")), TileOf(*eight.Find("n")));
  }
  const ir::Schedule many = Chosen(Product("9..16", "16000000", "f32"));
  EXPECT_EQ(TileOf(*many.Find("m")), 8);
  EXPECT_EQ(many.Find("n")->outer, LoopKind::kGridX);
  EXPECT_EQ(TileOf(*Chosen(Product("9..17", "4096", "f32")).Find("m")), 32);
}

TEST(ChooseSchedule, ValuesThatAreRoundedWhereTheyAreRead) {
  EXPECT_EQ(Chosen(Attention("bf16", "bf16", "64")).instruction, ir::MatrixInstruction::kMma);
  EXPECT_EQ(Chosen(Attention("bf16", "f32", "64")).instruction, ir::MatrixInstruction::kFma);
}

// Fewer keys in a chunk, then fewer queries.
TEST(ChooseSchedule, WideHeads) {
  const auto tile = [](const std::string& axis, const std::string& width) {
    return TileOf(*Chosen(Attention("f32", "f32", width), "sm_86").Find(axis));
  };
  EXPECT_EQ(tile("t", "64"), 64);
  EXPECT_EQ(tile("t", "128"), 32);
  EXPECT_EQ(tile("t", "512"), 16);
  EXPECT_EQ(tile("s", "512"), 16);
}

TEST(ChooseSchedule, WhatFitsNowhereIsRefused) {
  const auto schedule =
      ChooseSchedule(Attention("f32", "f32", "1024"), FindTarget("sm_86").value());
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(schedule.status().message()),
            "target.arch: no known schedule fits sm_86; the last one tried: attention: schedule: "
            "198912 bytes of shared memory, expected at most 101376");
}

}  // namespace
}  // namespace hackc::schedule

// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/lower_tensor.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <set>

#include "compiler/frontend/frontend.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/passes/graph/fuse_projections.h"
#include "compiler/passes/loop/fusion_cost.h"
#include "compiler/passes/loop/loop_builder.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "compiler/passes/tensor/lower_graph.h"
#include "tests/passes/segment_values.h"
#include "tests/support/golden.h"

namespace hackc::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ir::TensorModule TensorOf(const std::string& config, int64_t past,
                          std::optional<ir::DType> dtype = std::nullopt) {
  frontend::FrontendOptions options;
  options.dtype = dtype;
  options.past = {0, past};
  auto graph = frontend::BuildGraph(config, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return DeadValues(InlineViews(LowerGraph(FuseProjections(*graph))));
}

constexpr char kQwen2[] = R"({"model_type": "qwen2", "vocab_size": 1000, "hidden_size": 512,
  "intermediate_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 8, "num_key_value_heads": 2,
  "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "max_position_embeddings": 32768,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

std::vector<std::string> Names(const ir::LoopSegment& segment) {
  std::vector<std::string> names;
  for (const ir::LoopLaunch& launch : segment.ops) names.push_back(launch.fn.fn.name);
  return names;
}

const ir::LoopLaunch& Find(const ir::LoopModule& loops, const std::string& name) {
  for (const ir::LoopSegment& segment : loops.segments) {
    for (const ir::LoopLaunch& launch : segment.ops) {
      if (launch.fn.fn.name == name) return launch;
    }
  }
  ADD_FAILURE() << "no kernel " << name;
  return loops.segments[0].ops[0];
}

TEST(LowerTensor, KernelsOfAQwen2Layer) {
  ir::LoopModule loops = LowerTensor(TensorOf(kQwen2, 0));
  ASSERT_EQ(loops.segments.size(), 3);
  EXPECT_THAT(Names(loops.segments[0]), ElementsAre("embedding", "rotary_cosine", "rotary_sine"));
  EXPECT_EQ(loops.segments[1].count, 28);
  EXPECT_THAT(Names(loops.segments[1]),
              ElementsAre("input_norm", "qkv_weight", "qkv_bias", "qkv_linear", "rotated_query",
                          "rotated_key", "attention", "o_linear", "post_attention_norm",
                          "gate_up_linear", "down_linear"));
  EXPECT_THAT(Names(loops.segments[2]), ElementsAre("final_norm", "lm_head"));
}

TEST(LowerTensor, WithACacheKeysAreRotatedIntoIt) {
  ir::LoopModule loops = LowerTensor(TensorOf(kQwen2, 64));
  const ir::LoopLaunch& append = Find(loops, "key_cache_append");
  EXPECT_EQ(append.fn.fn.computes, "rotated_key + key_cache_append");
  EXPECT_THAT(append.args, ElementsAre("past_lengths", "qkv", "cosine", "sine", "key_cache"));
  EXPECT_THAT(append.results, IsEmpty());
  EXPECT_EQ(append.fn.fn.buffers.back().access, ir::Access::kReadWrite);
  EXPECT_THAT(Find(loops, "attention").args,
              ElementsAre("past_lengths", "rotated_query", "key_cache", "value_cache", "attended"));
}

TEST(LowerTensor, AttentionStreamsItsScores) {
  EXPECT_EQ(ir::Print(Find(LowerTensor(TensorOf(kQwen2, 0)), "attention").fn), R"(hackc loop 1
fn attention "attention" {
  symbol batch in 1..1
  symbol seq in 1..2048
  read @x0: bf16[batch, seq, 8, 64]
  read @x1: bf16[batch, seq, 2, 64]
  read @x2: bf16[batch, seq, 768]
  write @y: bf16[batch, seq, 8, 64]
  for %b: free in batch {
    for %s: free in seq {
      for %h: free in 8 {
        acc %softmax: softmax_sum[64]
        for %t: reduce in (%s + 1) {
          acc %sum: sum
          for %d: contract in 64 {
            %sum <- (f32(@x0[%b, %s, %h, %d]) * f32(@x1[%b, %t, (%h // 4), %d]))
          }
          let %v = (%sum * 0.125)
          for %e2: free in 64 {
            %softmax[%e2] <- %v, f32(@x2[%b, %t, ((((%h // 4) * 64) + %e2) + 640)])
          }
        }
        for %e: free in 64 {
          @y[%b, %s, %h, %e] = bf16(@softmax[%e])
        }
      }
    }
  }
}
)");
}

TEST(LowerTensor, GateAndUpShareOneLoop) {
  std::string text = ir::Print(Find(LowerTensor(TensorOf(kQwen2, 0)), "gate_up_linear").fn);
  EXPECT_THAT(text, HasSubstr(R"(        acc %sum: sum
        acc %sum2: sum
        for %k: contract in 512 {
          %sum <- (f32(@x0[%b, %s, %k]) * f32(@w0[%c, %k]))
          %sum2 <- (f32(@x0[%b, %s, %k]) * f32(@w1[%c, %k]))
        }
)"));
}

TEST(LowerTensor, ARowsStatisticStandsBeforeItsColumns) {
  std::string text = ir::Print(Find(LowerTensor(TensorOf(kQwen2, 0)), "input_norm").fn);
  EXPECT_THAT(text, HasSubstr(R"(    for %s: free in seq {
      acc %sum: sum
      for %k: reduce in 512 {
        %sum <- (f32(@x0[%b, %s, %k]) * f32(@x0[%b, %s, %k]))
      }
      let %v = rsqrt(((%sum / 512.0) + 1e-06))
      for %c: free in 512 {
)"));
}

TEST(LowerTensor, EqualKernelsHaveEqualText) {
  ir::LoopModule loops = LowerTensor(TensorOf(kQwen2, 0));
  ir::Function input = Find(loops, "input_norm").fn.fn,
               post = Find(loops, "post_attention_norm").fn.fn;
  post.name = input.name;
  post.computes = input.computes;
  EXPECT_EQ(ir::Print(ir::LoopFn{input}), ir::Print(ir::LoopFn{post}));
}

ir::TensorModule Parse(const std::string& sources, const std::string& ops) {
  auto module = ir::ParseTensor("hackc tensor 1\nmodule \"m\"\nsymbol seq in 1..64\n" + sources +
                                "\nsegment s: repeat 1 from 0 step 1 carry () {\n" + ops +
                                "  yield (%y)\n} -> (%out)\n\noutput (%out)\n");
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  EXPECT_THAT(ir::VerifyTensor(*module), IsEmpty());
  return *module;
}

constexpr char kNormThenLinear[] = R"(
  %ss: f32[seq] = reduce sum "norm" [s in seq] over [k in 32] ((@x[%s, %k] * @x[%s, %k]))
  %n: f32[seq, 32] = map "norm" [s in seq, c in 32] (@x[%s, %c] * rsqrt(@ss[%s]))
  %y: f32[seq, 48] = contract "linear" [s in seq, c in 48] over [k in 32] (@n[%s, %k], @w[%c, %k])
)";
constexpr char kXAndW[] = "input %x: f32[seq, 32]\nweight %w: f32[48, 32] \"w\"\n";

TEST(FusionGate, ANormIsNotFusedIntoAMatrixProductsOperand) {
  ir::TensorModule module = Parse(kXAndW, kNormThenLinear);
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("norm", "linear"));

  SegmentValues values = test::ValuesOf(module);
  ir::LoopLaunch norm = *BuildKernel(values, "n", {"ss"}), linear = *BuildKernel(values, "y", {});
  ir::LoopLaunch fused = *BuildKernel(values, "y", {"ss", "n"});
  EXPECT_FALSE(CostsNoMore({&fused.fn.fn}, {&norm.fn.fn, &linear.fn.fn}));
  EXPECT_GT(CostOf({&fused.fn.fn}, true).operations,
            CostOf({&norm.fn.fn, &linear.fn.fn}, true).operations);
}

// A statistic whose row is not fixed by a loop outside of the columns would be summed again for
// each cell.
TEST(FusionGate, ARowsStatisticIsNeverRecomputedPerCell) {
  ir::TensorModule module = Parse("input %x: f32[seq, 32]\n", R"(
  %ss: f32[seq] = reduce sum "statistic" [s in seq] over [k in 32] ((@x[%s, %k] * @x[%s, %k]))
  %y: f32[32, seq] = map "turned" [c in 32, s in seq] (@x[%s, %c] * rsqrt(@ss[%s]))
)");
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("statistic", "turned"));
  SegmentValues values = test::ValuesOf(module);
  const ir::LoopLaunch fused = *BuildKernel(values, "y", {"ss"});
  EXPECT_GT(CostOf({&fused.fn.fn}, true).trips, 32 * 64 * 32);
}

TEST(FusionGate, AMatrixProductWithTwoReadersIsComputedOnce) {
  ir::TensorModule module = Parse(kXAndW, R"(
  %sum: f32[seq, 48] = contract "linear" [s in seq, c in 48] over [k in 32] (@x[%s, %k], @w[%c, %k])
  %ss: f32[seq] = reduce sum "norm" [s in seq] over [k in 48] ((@sum[%s, %k] * @sum[%s, %k]))
  %y: f32[seq, 48] = map "norm" [s in seq, c in 48] (@sum[%s, %c] * rsqrt(@ss[%s]))
)");
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("linear", "norm"));
}

TEST(FusionGate, AnActivationIsNotRecomputedForEachColumn) {
  ir::TensorModule module = Parse(kXAndW, R"(
  %a: f32[seq, 32] = map "activation" [s in seq, c in 32] tanh(@x[%s, %c])
  %y: f32[seq, 48] = contract "linear" [s in seq, c in 48] over [k in 32] (@a[%s, %k], @w[%c, %k])
)");
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("activation", "linear"));
}

TEST(FusionGate, AnEpilogueIsFused) {
  ir::TensorModule module = Parse(kXAndW, R"(
  %sum: f32[seq, 48] = contract "linear" [s in seq, c in 48] over [k in 32] (@x[%s, %k], @w[%c, %k])
  %a: f32[seq, 48] = map "activation" [s in seq, c in 48] tanh(@sum[%s, %c])
  %y: f32[seq, 48] = map "scaled" [s in seq, c in 48] (@a[%s, %c] * 2.0)
)");
  ir::LoopModule loops = LowerTensor(module);
  EXPECT_THAT(Names(loops.segments[0]), ElementsAre("linear"));
  EXPECT_EQ(loops.segments[0].ops[0].fn.fn.computes, "linear + activation + scaled");
}

// Two sums over one extent share a loop, but not where the second needs the first: variance needs
// the mean.
TEST(LowerTensor, SumsThatDependOnEachOtherKeepTheirOrder) {
  ir::TensorModule module = Parse("input %x: f32[seq, 32]\n", R"(
  %total: f32[seq] = reduce sum "norm" [s in seq] over [k in 32] (@x[%s, %k])
  %mean: f32[seq] = map "norm" [s in seq] (@total[%s] / 32.0)
  %squares: f32[seq] = reduce sum "norm" [s in seq] over [k in 32] (((@x[%s, %k] - @mean[%s]) * (@x[%s, %k] - @mean[%s])))
  %y: f32[seq, 32] = map "norm" [s in seq, c in 32] ((@x[%s, %c] - @mean[%s]) * rsqrt(@squares[%s]))
)");
  ir::LoopModule loops = LowerTensor(module);
  ASSERT_THAT(Names(loops.segments[0]), ElementsAre("norm"));
  EXPECT_THAT(ir::Print(loops.segments[0].ops[0].fn), HasSubstr(R"(    acc %sum: sum
    for %k: reduce in 32 {
      %sum <- @x0[%s, %k]
    }
    let %v = (%sum / 32.0)
    acc %sum2: sum
    for %k2: reduce in 32 {
      %sum2 <- ((@x0[%s, %k2] - %v) * (@x0[%s, %k2] - %v))
    }
)"));
}

// A branch that is not taken may read out of range, so nothing of it is computed ahead.
TEST(LowerTensor, WhatOnlyOneBranchReadsStaysInIt) {
  ir::TensorModule module = Parse("input %x: f32[seq, 32]\ninput %z: f32[seq, 8]\n", R"(
  %row: f32[8] = reduce sum "row" [c in 8] over [s in seq] (@z[%s, %c])
  %twice: f32[seq, 8] = map "twice" [s in seq, c in 8] (@z[%s, %c] * 2.0)
  %y: f32[seq, 32] = map "joined" [s in seq, c in 32] select((%c < 8), (@twice[%s, %c] + @row[%c]), @x[%s, %c])
)");
  SegmentValues values = test::ValuesOf(module);
  EXPECT_FALSE(BuildKernel(values, "y", {"row"}).has_value());
  EXPECT_TRUE(BuildKernel(values, "y", {"twice"}).has_value());
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("row", "twice", "joined"));
}

// What depends on weights alone is computed once, when they are loaded.
TEST(LowerTensor, PreparedWeightsAreKernelsOfTheirOwn) {
  ir::TensorModule module = Parse(kXAndW, R"(
  %w2: f32[48, 32] = map "doubled" [n in 48, c in 32] (@w[%n, %c] * 2.0)
  %y: f32[seq, 48] = map "sum" [s in seq, c in 48] (@x[%s, 0] + @w2[%c, 0])
)");
  EXPECT_THAT(Names(LowerTensor(module).segments[0]), ElementsAre("doubled", "sum"));
}

// Reads of `buffer` that are rounded to 16 bits as they are.
int RoundedReads(const ir::Function& fn, const std::string& buffer) {
  int reads = 0;
  ir::WalkExprs(fn.body, [&](const ir::Cast& cast) {
    const auto* load = ir::As<ir::Load>(cast.a);
    reads += load && load->buffer == buffer && ir::SizeOf(cast.dtype) == 2;
  });
  return reads;
}

// A sum is rounded in its own kernel, however many read the rounded values: of a query-key-value
// product without a bias and with a cache there are three.
TEST(LowerTensor, NoProductWritesSumsThatItsReadersRound) {
  int products = 0;
  for (const auto& folder :
       std::filesystem::directory_iterator(HACKC_SOURCE_DIR "/tests/data/golden")) {
    if (!folder.is_directory()) continue;
    const absl::StatusOr<std::string> config = test::ReadFile(folder.path() / "config.json");
    ASSERT_OK(config);
    for (const ir::DType dtype : {ir::DType::kBF16, ir::DType::kF16}) {
      const ir::LoopModule loops = LowerTensor(TensorOf(*config, 16, dtype));
      for (const ir::LoopSegment& segment : loops.segments) {
        std::set<std::string> sums;  // values that products write in float32
        for (const ir::LoopLaunch& launch : segment.ops) {
          for (size_t i = 0; i < launch.args.size(); ++i) {
            const ir::BufferDecl& buffer = launch.fn.fn.buffers[i];
            if (sums.contains(launch.args[i])) {
              EXPECT_EQ(RoundedReads(launch.fn.fn, buffer.name), 0)
                  << folder.path() << ": " << launch.fn.fn.name << " reads " << launch.args[i];
            }
            if (buffer.access == ir::Access::kRead) continue;
            bool product = false;
            ir::WalkStmts(launch.fn.fn.body, [&](const ir::For& loop) {
              product |= loop.role == ir::AxisRole::kContract;
            });
            products += product;
            if (product && buffer.dtype == ir::DType::kF32) sums.insert(launch.args[i]);
          }
        }
      }
    }
  }
  EXPECT_GT(products, 100);
}

// The law of the gate: no module's kernels cost more than one kernel for each operation.
TEST(FusionGate, NeverCostsMoreThanNoFusion) {
  for (int64_t past : {0, 64}) {
    ir::TensorModule module = TensorOf(kQwen2, past);
    ir::LoopModule loops = LowerTensor(module);
    for (size_t i = 0; i < module.segments.size(); ++i) {
      ir::TensorModule separate = module;
      separate.segments = {module.segments[i]};
      std::vector<ir::LoopLaunch> kernels;
      SegmentValues values = test::ValuesOf(separate);
      for (const ir::TensorSegment& segment : module.segments) {
        for (const ir::SourceDecl& source : segment.sources)
          values.types[source.name] = source.type;
        for (const ir::TensorOp& op : segment.ops) values.types[op.out] = op.type;
      }
      for (const auto* name : {"x", "hidden", "embedded"})
        values.types[name] = values.types.at("embedding");
      for (const auto* name : {"cosine", "sine"})
        values.types[name] = values.types.at("cosine_table");
      for (const ir::TensorOp& op : module.segments[i].ops)
        kernels.push_back(*BuildKernel(values, op.out, {}));
      std::vector<const ir::Function*> before, after;
      for (const ir::LoopLaunch& launch : kernels) before.push_back(&launch.fn.fn);
      for (const ir::LoopLaunch& launch : loops.segments[i].ops) after.push_back(&launch.fn.fn);
      EXPECT_TRUE(CostsNoMore(after, before)) << module.segments[i].name;
      EXPECT_LE(after.size(), before.size());
    }
  }
}

}  // namespace
}  // namespace hackc::passes

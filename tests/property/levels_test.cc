// SPDX-License-Identifier: MIT
// Laws that hold on every module, tried on random ones, level after level down to kernels that run
// thread by thread:
// text is a fixed point, what verifies still does after a pass and means the same, some passes do
// nothing twice, the names of values matter to nothing. In float64 without rounding, so that only
// the order of sums is left.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "tests/property/cases.h"
#include "tests/property/laws.h"
#include "tests/property/random_config.h"
#include "tests/support/golden.h"
#include "tests/support/random_tensor.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"

namespace hackc::property {
namespace {

using opt::Unit;

// Those whose output is their own input of another form give another level and cannot be run twice.
const std::set<std::string> kIdempotent = {"fuse_projections", "inline_views", "dead_values",
                                           "expand_softmax",   "vectorize",    "insert_barriers"};

bool IsUnsplitTile(const Unit& unit) {
  if (opt::LevelOf(unit) != opt::Level::kTile) return false;
  const auto& functions = std::get<opt::Kernels>(unit).functions;
  return std::none_of(functions.begin(), functions.end(), [](const opt::KernelFunction& function) {
    return opt::IsSplit(opt::FunctionOf(function).body);
  });
}

// One pass after another to Kernel level; after each, all laws against the results of the first.
void ExpectLawsDown(Unit unit, const opt::RandomRun& run) {
  const auto truth = opt::Interpret(unit, run);
  ASSERT_TRUE(truth.ok()) << truth.status() << "\n" << opt::Print(unit);
  ExpectFixedPoint(unit);
  bool barriers = false;
  for (const std::string& pass : opt::DefaultPasses(unit, opt::Level::kKernel)) {
    SCOPED_TRACE("pass " + pass);
    auto next = opt::RunPass(pass, unit, Hopper());
    ASSERT_TRUE(next.ok()) << next.status() << "\n" << opt::Print(unit);
    barriers |= pass == "insert_barriers";
    ASSERT_THAT(opt::Verify(*next, schedule::LimitsOf(Hopper())), testing::IsEmpty())
        << opt::Print(*next);
    ExpectFixedPoint(*next);
    opt::RandomRun step = run;
    step.barriers_may_lack = !barriers;
    if (kIdempotent.contains(pass)) {
      const auto twice = opt::RunPass(pass, *next, Hopper());
      ASSERT_TRUE(twice.ok()) << twice.status();
      EXPECT_EQ(opt::Print(*twice), opt::Print(*next)) << "does something twice";
    }
    // Chunks overhang their axis until axes are split: the split form is what runs.
    if (IsUnsplitTile(*next)) {
      unit = *std::move(next);
      continue;
    }
    const auto results = opt::Interpret(*next, step);
    ASSERT_TRUE(results.ok()) << results.status() << "\n" << opt::Print(*next);
    const auto difference = opt::LargestDifference(*truth, *results);
    ASSERT_TRUE(difference.ok()) << difference.status();
    ASSERT_LE(*difference, kTolerance) << opt::Print(unit) << "became\n" << opt::Print(*next);
    if (testing::Test::HasFailure()) return;
    unit = *std::move(next);
  }
  EXPECT_TRUE(barriers);
}

TEST(Laws, RandomDecodersMeanTheSameAtEveryLevel) {
  ForEachSeed(8, [](unsigned seed) {
    const auto graph = frontend::BuildGraph(RandomConfig(seed), RandomOptions(seed));
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << RandomConfig(seed);
    SCOPED_TRACE(RandomConfig(seed));
    opt::RandomRun run;
    run.seed = seed;
    static constexpr int64_t kLengths[] = {1, 2, 3, 5, 7, 11};
    std::map<std::string, int64_t> given;
    for (const ir::SymbolDecl& symbol : graph->symbols) {
      given[symbol.name] =
          std::clamp(symbol.name == "batch" ? 2 : kLengths[(seed / 2) % 6], symbol.min, symbol.max);
    }
    run.symbols = given;
    ExpectLawsDown(*graph, run);
  });
}

// One head, so that its output projection is no more work inside the attention kernel.
TEST(Laws, AttentionOfOneHeadLowers) {
  const auto graph = frontend::BuildGraph(
      R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 12,
          "intermediate_size": 19, "num_hidden_layers": 1, "num_attention_heads": 1,
          "num_key_value_heads": 1, "vocab_size": 29, "hidden_act": "silu", "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "max_position_embeddings": 128, "tie_word_embeddings": false})",
      {{.seq = {1, 17}}, ir::DType::kF32});
  ASSERT_OK(graph);
  ExpectLawsDown(*graph, {.symbols = {{"batch", 1}, {"seq", 7}}, .seed = 1});
}

TEST(Laws, RandomTensorModulesMeanTheSameAtEveryLevel) {
  ForEachSeed(40, [](unsigned seed) {
    opt::RandomRun run{.symbols = {{"seq", 1 + seed % 7}}, .seed = seed};
    ExpectLawsDown(test::RandomTensorModule(seed, 2 + static_cast<int>(seed % 10)), run);
  });
}

// ---- names --------------------------------------------------------------------------------------

// The same kernel whose axes, values and states have other names.
ir::LoopFn Renamed(ir::LoopFn loop, const std::function<std::string(const std::string&)>& rename) {
  std::set<std::string> kept;
  for (const ir::BufferDecl& buffer : loop.fn.buffers) kept.insert(buffer.name);
  loop.fn.body = ir::RenameAll(loop.fn.body, [&](const std::string& name) {
    return kept.contains(name) ? name : rename(name);
  });
  return loop;
}

TEST(Laws, NamesOfValuesMatterToNothing) {
  ForEachSeed(20, [](unsigned seed) {
    const auto kernels = RandomLoops(seed);
    ASSERT_OK(kernels);
    const opt::RandomRun run{.symbols = {{"seq", 1 + seed % 7}}, .seed = seed};
    for (const opt::KernelFunction& function : kernels->functions) {
      const auto& loop = std::get<ir::LoopFn>(function);
      const auto plain = LowerChosen(loop), again = LowerChosen(loop);
      ASSERT_OK(plain);
      ASSERT_OK(again);
      EXPECT_EQ(ir::Print(plain->kernel), ir::Print(again->kernel)) << "not the same twice";

      // A prefix keeps the order of names, and must come out as a prefix and nothing else.
      const auto prefixed =
          LowerChosen(Renamed(loop, [](const std::string& name) { return "q_" + name; }));
      ASSERT_OK(prefixed);
      const std::string text =
          std::regex_replace(ir::Print(prefixed->kernel), std::regex("([%@])q_"), "$1");
      EXPECT_EQ(text, ir::Print(plain->kernel));

      // Names in another order may put factors in another order, and no more.
      std::map<std::string, std::string> others;
      const auto shuffled = LowerChosen(Renamed(loop, [&](const std::string& name) {
        return others.try_emplace(name, "v" + std::to_string(999 - others.size())).first->second;
      }));
      ASSERT_OK(shuffled);
      const auto difference = DifferenceOf(plain->kernel, shuffled->kernel, run);
      ASSERT_OK(difference);
      EXPECT_EQ(*difference, 0) << ir::Print(shuffled->kernel);
    }
  });
}

}  // namespace
}  // namespace hackc::property

// SPDX-License-Identifier: MIT
// Every kernel of small models, at every level below Tensor, on the same random data: Loop IR in
// float64 is the truth, Tile IR must equal it, and the Kernel interpreter must agree within what
// its dtypes allow. Schedules are those that the target gets.
#include <cmath>
#include <map>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/passes/graph/fuse_projections.h"
#include "compiler/passes/loop/lower_tensor.h"
#include "compiler/passes/loop/merge_launches.h"
#include "compiler/passes/loop/split_reductions.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "compiler/passes/tensor/lower_graph.h"
#include "compiler/program/reference_kernel.h"
#include "compiler/schedule/check_schedule.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/target.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc::interp {
namespace {

using ir::DType;

constexpr int64_t kMaxSeq = 128, kMaxPast = 64, kCapacity = kMaxSeq + kMaxPast;

int64_t Eval(const ir::Expr& e, const std::map<std::string, int64_t>& symbols) {
  ir::Expr value = ir::Rewrite(e, [&](const ir::Expr& node) -> ir::Expr {
    const ir::Symbol* symbol = ir::As<ir::Symbol>(node);
    return symbol ? ir::IntLit(symbols.at(symbol->name)) : nullptr;
  });
  return ir::AsInt(value).value();
}

struct Case {
  std::string model;
  DType dtype;
  std::map<std::string, int64_t> symbols;
  bool one_token = false;             // compiled for seq 1..1, as the entry point decode is
  std::vector<int64_t> lengths = {};  // of each sequence in the cache; none: all as long as `past`
  int64_t page_size = 0;
  int64_t max_seq = kMaxSeq;  // that it is compiled for

  int64_t Length(int64_t b) const {
    return lengths.empty() ? symbols.at("past") : lengths[static_cast<size_t>(b)];
  }
  // Positions that sequence `b` fills, and the entries of its page table that hold a page.
  int64_t Filled(int64_t b) const { return Length(b) + symbols.at("seq"); }
  int64_t PagesOf(int64_t b) const { return (Filled(b) + page_size - 1) / page_size; }
  // Pages lie scattered over the pool. There is none behind a sequence's end.
  double Page(int64_t b, int64_t i) const {
    if (i >= PagesOf(b)) return i % 2 == 0 ? -1 : 1e6;
    return static_cast<double>((i * symbols.at("batch") + b) * 2 + 1);
  }
};

// Inputs of a kernel: normal floats, small integers (indices of rows).
void FillBuffers(const ir::LoopLaunch& launch, const Case& param, FunctionRun& run, int seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (size_t n = 0; n < launch.args.size(); ++n) {
    const ir::BufferDecl& buffer = launch.fn.fn.buffers[n];
    const std::string& name = launch.args[n];
    if (buffer.access == ir::Access::kWrite) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer.shape) shape.push_back(Eval(extent, run.symbols));
    TensorData data = TensorData::Zeros(buffer.dtype, shape);
    for (double& value : data.values) {
      value = ir::IsFloat(buffer.dtype) ? normal(generator) : static_cast<double>(generator() % 64);
    }
    for (int64_t i = 0; name == "past_lengths" && i < shape[0]; ++i) data.At({i}) = param.Length(i);
    for (int64_t i = 0; name == "page_table" && i < data.size(); ++i) {
      data.values[i] = param.Page(i / shape[1], i % shape[1]);
    }
    data.Round();
    if (buffer.access == ir::Access::kRead && name.ends_with("_cache")) {
      // Nobody reads what a cache holds beyond the tokens so far.
      const int64_t row = shape[2] * shape[3];
      TensorData poisoned = TensorData::Filled(buffer.dtype, shape, NAN);
      for (int64_t b = 0; b < param.symbols.at("batch"); ++b) {
        for (int64_t t = 0; t < param.Filled(b); ++t) {
          int64_t place = b * kCapacity + t;
          if (const int64_t size = param.page_size; size > 0)
            place = static_cast<int64_t>(param.Page(b, t / size)) * size + t % size;
          std::copy_n(data.values.begin() + place * row, row,
                      poisoned.values.begin() + place * row);
        }
      }
      data = std::move(poisoned);
    }
    run.buffers[buffer.name] = std::move(data);
  }
}

// Largest difference in units of `unit` relative to the truth's largest element; infinite where
// NaN.
double Distance(const TensorData& actual, const TensorData& truth) {
  double scale = 1e-30, worst = 0;
  for (double value : truth.values) {
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  }
  for (size_t i = 0; i < truth.values.size(); ++i) {
    if (actual.values[i] == truth.values[i])
      continue;  // -inf too: the score of a part without keys
    const double difference = std::abs(actual.values[i] - truth.values[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst / scale;
}

ir::KernelFn WithoutBarriers(ir::KernelFn kernel) {
  kernel.fn.body =
      ir::RewriteStmts(kernel.fn.body, [](const ir::Stmt& s) -> std::optional<ir::Block> {
        if (ir::As<ir::Barrier>(s)) return ir::Block();
        return std::nullopt;
      });
  return kernel;
}

// Large enough for matrix instructions, with edges in every direction.
constexpr char kWide[] =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
  "intermediate_size": 200, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
  "vocab_size": 136, "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "tie_word_embeddings": false})";

std::string Config(const std::string& model) {
  if (model == "wide") return kWide;
  if (model.starts_with("heads")) {  // of so many elements
    return std::string(kWide).insert(1, "\"head_dim\": " + model.substr(5) + ", ");
  }
  auto golden = test::LoadGolden(model);
  EXPECT_TRUE(golden.ok()) << golden.status();
  return golden.ok() ? golden->config_json : "";
}

class KernelLevels : public testing::TestWithParam<Case> {};

TEST_P(KernelLevels, EveryLevelAgrees) {
  const Case& param = GetParam();
  frontend::FrontendOptions options;
  options.dtype = param.dtype;
  options.batch = {1, 8};
  options.seq = {1, param.max_seq};
  options.past = {0, param.symbols.at("past") > 0 ? kMaxPast : 0};
  options.page_size = param.page_size;
  options.last_logits = !param.lengths.empty();
  auto graph = frontend::BuildGraph(Config(param.model), options);
  ASSERT_OK(graph);
  for (ir::SymbolDecl& symbol : graph->symbols) {
    if (param.one_token && symbol.name == "seq") symbol.max = 1;
  }
  ir::LoopModule module = passes::MergeLaunches(passes::LowerTensor(passes::DeadValues(
      passes::InlineViews(passes::LowerGraph(passes::FuseProjections(*graph))))));
  auto target = schedule::FindTarget("sm_90a");
  ASSERT_OK(target);
  // However short these caches are, keys in parts are what decoding is made of.
  const size_t launches = module.segments[1].ops.size();
  if (param.one_token) module = passes::SplitReductions(module, {target->multiprocessors, 2048});
  // The window of mistral's few keys is one part.
  EXPECT_EQ(module.segments[1].ops.size() > launches, param.one_token && param.model != "mistral");
  const double unit = param.dtype == DType::kF32   ? 0x1p-24
                      : param.dtype == DType::kF16 ? 0x1p-11
                                                   : 0x1p-8;
  // Sums here are short; an angle of n radians is known to n units of float32.
  const double tolerance =
      16 * unit + 0x1p-24 * 4 * (param.symbols.at("seq") + param.symbols.at("past"));
  int kernels = 0, with_barriers = 0, with_mma = 0;
  for (const auto& segment : module.segments) {
    for (const ir::LoopLaunch& launch : segment.ops) {
      SCOPED_TRACE(launch.fn.fn.name);
      ++kernels;
      auto parsed = ir::ParseLoop(ir::Print(launch.fn));
      ASSERT_OK(parsed);
      EXPECT_TRUE(ir::SameValue(parsed->fn, launch.fn.fn));
      EXPECT_THAT(ir::VerifyLoop(launch.fn), testing::IsEmpty()) << ir::Print(launch.fn);
      FunctionRun loop;
      for (const ir::SymbolDecl& symbol : launch.fn.fn.symbols) {
        auto it = param.symbols.find(symbol.name);
        loop.symbols[symbol.name] = it == param.symbols.end() ? symbol.max : it->second;
      }
      FillBuffers(launch, param, loop, kernels);
      FunctionRun tile = loop, kernel = loop, bare = loop, reference = loop;
      absl::Status status = RunLoop(launch.fn, loop);
      ASSERT_TRUE(status.ok()) << status << "\n" << ir::Print(launch.fn);

      const ir::Schedule chosen = schedule::ChooseSchedule(launch.fn, *target).value();
      ASSERT_OK(schedule::CheckSchedule(launch.fn, chosen, *target));
      auto lowered = passes::LowerLoop(launch.fn, chosen);
      ASSERT_OK(lowered);
      EXPECT_THAT(ir::VerifyTile(lowered->tile), testing::IsEmpty()) << ir::Print(lowered->tile);
      EXPECT_THAT(ir::VerifyKernel(lowered->kernel), testing::IsEmpty())
          << ir::Print(lowered->kernel);
      auto tile_parsed = ir::ParseTile(ir::Print(lowered->tile));
      ASSERT_TRUE(tile_parsed.ok()) << tile_parsed.status() << "\n" << ir::Print(lowered->tile);
      EXPECT_TRUE(ir::SameValue(tile_parsed->fn, lowered->tile.fn));
      auto kernel_parsed = ir::ParseKernel(ir::Print(lowered->kernel));
      ASSERT_TRUE(kernel_parsed.ok()) << kernel_parsed.status() << "\n"
                                      << ir::Print(lowered->kernel);
      EXPECT_TRUE(ir::SameValue(kernel_parsed->fn, lowered->kernel.fn));
      EXPECT_EQ(ir::Print(*kernel_parsed), ir::Print(lowered->kernel));

      status = RunTile(lowered->tile, tile);
      EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(lowered->tile);
      kernel.arithmetic = Arithmetic::kHardware;
      status = RunKernel(lowered->kernel, kernel, {kernels % 2 == 0});
      EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(lowered->kernel);
      // What a GPU's results are held against below Loop IR is Loop IR itself.
      const ir::KernelFn plain = program::PlainKernel(launch.fn);
      status = RunKernel(plain, reference);
      EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(plain);
      bool mma = false;
      ir::WalkStmts(lowered->kernel.fn.body,
                    [&](const ir::Stmt& s) { mma |= ir::As<ir::Mma>(s) != nullptr; });
      with_mma += mma;
      ir::KernelFn without = WithoutBarriers(lowered->kernel);
      if (!ir::SameValue(without.fn, lowered->kernel.fn)) {
        ++with_barriers;
        EXPECT_FALSE(RunKernel(without, bare).ok()) << "runs without its barriers";
      }
      for (const ir::BufferDecl& buffer : launch.fn.fn.buffers) {
        if (buffer.access == ir::Access::kRead) continue;
        const TensorData& truth = loop.buffers.at(buffer.name);
        EXPECT_LE(Distance(tile.buffers[buffer.name], truth), 1e-9) << buffer.name;
        EXPECT_LE(Distance(kernel.buffers[buffer.name], truth), tolerance) << buffer.name;
        EXPECT_LE(Distance(reference.buffers[buffer.name], truth), 1e-9) << buffer.name;
      }
    }
  }
  EXPECT_GT(kernels, 5);
  EXPECT_GT(with_barriers, 0);
  EXPECT_TRUE(param.one_token || (with_mma > 0) == (param.dtype != DType::kF32));
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (auto symbols : {std::map<std::string, int64_t>{{"batch", 1}, {"seq", 13}, {"past", 0}},
                         std::map<std::string, int64_t>{{"batch", 2}, {"seq", 1}, {"past", 0}},
                         std::map<std::string, int64_t>{{"batch", 2}, {"seq", 5}, {"past", 9}}}) {
      cases.push_back({"llama", dtype, symbols});
    }
  }
  for (const char* golden : {"qwen2", "llama-mqa-bias"}) {
    cases.push_back({golden, DType::kBF16, {{"batch", 1}, {"seq", 33}, {"past", 0}}});
  }
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    cases.push_back({"wide", dtype, {{"batch", 1}, {"seq", 35}, {"past", 0}}});
  }
  cases.push_back({"wide", DType::kBF16, {{"batch", 2}, {"seq", 1}, {"past", 40}}});
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    cases.push_back({"qwen2", dtype, {{"batch", 2}, {"seq", 1}, {"past", 41}}, true});
    cases.push_back({"wide", dtype, {{"batch", 1}, {"seq", 1}, {"past", 64}}, true});
  }
  // Sequences of unequal lengths: in a row, and in pages on whose edges they end.
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t page_size : {0, 16}) {
      const std::map<std::string, int64_t> four = {{"batch", 4}, {"seq", 4}, {"past", 37}};
      cases.push_back({"wide", dtype, four, false, {0, 37, 1, 17}, page_size});
      cases.push_back({"qwen2",
                       dtype,
                       {{"batch", 4}, {"seq", 1}, {"past", 32}},
                       true,
                       {15, 16, 0, 32},
                       page_size});
      cases.push_back(
          {"wide", dtype, {{"batch", 3}, {"seq", 1}, {"past", 64}}, true, {17, 64, 1}, page_size});
    }
  }
  for (int64_t page_size : {1, 3, 64}) {
    cases.push_back({"wide",
                     DType::kBF16,
                     {{"batch", 2}, {"seq", 35}, {"past", 31}},
                     false,
                     {2, 31},
                     page_size});
  }
  cases.push_back({"mistral",
                   DType::kBF16,
                   {{"batch", 8}, {"seq", 1}, {"past", 61}},
                   true,
                   {61, 0, 1, 2, 31, 32, 33, 47},
                   16});
  cases.push_back({"mistral", DType::kBF16, {{"batch", 1}, {"seq", 1}, {"past", 17}}, true});
  // Blocks of rows whose windows begin in different chunks of keys, in a row and in pages.
  const std::map<std::string, int64_t> windows = {{"batch", 3}, {"seq", 70}, {"past", 64}};
  cases.push_back({"mistral", DType::kBF16, windows, false, {0, 33, 64}, 0});
  cases.push_back({"mistral", DType::kF32, windows, false, {64, 8, 63}, 16});
  // Heads that few lanes divide, or of which little fits shared memory; prompts of a few tokens.
  cases.push_back({"heads100", DType::kF32, {{"batch", 1}, {"seq", 19}, {"past", 0}}});
  for (const char* heads : {"heads100", "heads72"}) {
    cases.push_back({heads, DType::kF32, {{"batch", 1}, {"seq", 1}, {"past", 50}}, true});
    cases.push_back({heads, DType::kBF16, {{"batch", 1}, {"seq", 5}, {"past", 0}}});
    cases.back().max_seq = 8;
  }
  cases.push_back({"heads384", DType::kBF16, {{"batch", 1}, {"seq", 19}, {"past", 0}}});
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    for (int64_t seq : {2, 7}) {
      cases.push_back({"wide", dtype, {{"batch", 1}, {"seq", seq}, {"past", 0}}});
      cases.back().max_seq = seq;
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, KernelLevels, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.model + "_" + std::string(ir::Name(info.param.dtype));
  for (const auto& [symbol, value] : info.param.symbols)
    name += "_" + symbol + std::to_string(value);
  if (info.param.one_token) name += "_one_token";
  if (info.param.max_seq < kMaxSeq) name += "_short";
  if (!info.param.lengths.empty()) name += "_unequal_pages" + std::to_string(info.param.page_size);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace hackc::interp

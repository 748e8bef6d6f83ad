// SPDX-License-Identifier: MIT
// Tokens through a program with a cache: two layers that each append the ids of each sequence to
// their state, and logits that are 1 at (sum over both caches up to the token) modulo the
// vocabulary. A wrong length, a cache of another layer or sequence, or a forgotten token changes
// the sum.
#include "client/runtime/generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/runtime/digest.h"
#include "client/runtime/program_check.h"
#include "gtest/gtest.h"
#include "tests/client/fake_gpu.h"
#include "tests/client/formula_builder.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

using absl::StatusCode;

constexpr int kVocabulary = 7, kCapacity = 16, kMaxSeq = 3, kMaxPast = 12, kLayers = 2,
              kMaxBatch = 3;

void AddSymbol(google::protobuf::RepeatedPtrField<v1::Symbol>* symbols, const char* name,
               int64_t min, int64_t max) {
  v1::Symbol* symbol = symbols->Add();
  symbol->set_name(name);
  symbol->set_min(min);
  symbol->set_max(max);
}

void AddSymbols(google::protobuf::RepeatedPtrField<v1::Symbol>* symbols, int64_t max_seq) {
  AddSymbol(symbols, "batch", 1, kMaxBatch);
  AddSymbol(symbols, "seq", 1, max_seq);
  AddSymbol(symbols, "past", 0, kMaxPast);
}

v1::Buffer* AddBuffer(v1::Program* program, const char* name, v1::Buffer::Kind kind,
                      v1::DType dtype) {
  v1::Buffer* buffer = program->add_buffers();
  buffer->set_id(program->buffers_size() - 1);
  buffer->set_name(name);
  buffer->set_kind(kind);
  buffer->set_dtype(dtype);
  *buffer->add_shape() = Sym("batch");
  return buffer;
}

// Two buffers and the lengths, then batch, seq and past; the grid does not depend on past.
void AddKernel(v1::Program* program, const char* name, int64_t max_seq) {
  v1::Kernel* kernel = program->add_kernels();
  kernel->set_name(name);
  kernel->set_entry(name);
  kernel->set_digest(Sha256Digest(name));
  kernel->set_arch("sm_90a");
  *kernel->add_grid() = Sym("seq");
  for (int i = 0; i < 2; ++i) *kernel->add_grid() = Const(1);
  for (int i = 0; i < 3; ++i) kernel->add_block(1);
  AddSymbols(kernel->mutable_valid(), max_seq);
  uint32_t offset = 0;
  for (const char* param_name : {"in", "out", "lengths", "batch", "seq", "past"}) {
    v1::Param* param = kernel->add_params();
    const bool pointer = offset < 24;
    param->set_name(param_name);
    param->set_kind(pointer ? v1::Param::BUFFER : v1::Param::SYMBOL_I32);
    param->set_offset(offset);
    param->set_size(pointer ? 8 : 4);
    param->set_written(std::string(param_name) == "out");
    if (!pointer) param->set_symbol(param_name);
    offset += param->size();
  }
}

constexpr uint32_t kLengths = 3;  // the buffer past_lengths

void AddLaunch(google::protobuf::RepeatedPtrField<v1::Step>* steps, uint32_t kernel, uint32_t in,
               uint32_t out) {
  v1::Launch* launch = steps->Add()->mutable_launch();
  launch->set_kernel(kernel);
  launch->add_args()->set_buffer(in);
  launch->add_args()->set_buffer(out);
  launch->add_args()->set_buffer(kLengths);
}

v1::Program CachedProgram() {
  v1::Program program;
  program.set_format_version("1");
  program.set_arch("sm_90a");
  AddSymbols(program.mutable_symbols(), kMaxSeq);
  *AddBuffer(&program, "input_ids", v1::Buffer::INPUT, v1::DTYPE_INT32)->add_shape() = Sym("seq");
  v1::Buffer* logits = AddBuffer(&program, "logits", v1::Buffer::OUTPUT, v1::DTYPE_FLOAT32);
  *logits->add_shape() = Sym("seq");
  *logits->add_shape() = Const(kVocabulary);
  v1::Buffer* cache = AddBuffer(&program, "cache", v1::Buffer::STATE, v1::DTYPE_FLOAT32);
  *cache->add_shape() = Const(kCapacity);
  cache->set_weight_name("layers.{layer}.cache");
  cache->set_repeat_count(kLayers);
  cache->set_layer_step(1);
  AddBuffer(&program, "past_lengths", v1::Buffer::INPUT, v1::DTYPE_INT32);
  // Logits start at 0 and each layer adds its cache's sum as an amount; `finish` turns them into
  // logits.
  for (const char* phase : {"prefill", "decode"}) {
    const int64_t max_seq = std::string(phase) == "decode" ? 1 : kMaxSeq;
    const uint32_t first = program.kernels_size();
    for (const char* kernel : {"clear", "append", "sum", "finish"}) {
      AddKernel(&program, absl::StrCat(kernel, "_", phase).c_str(), max_seq);
    }
    v1::EntryPoint* entry = program.add_entry_points();
    entry->set_name(phase);
    entry->add_inputs(0);
    entry->add_inputs(kLengths);
    entry->add_outputs(1);
    AddSymbols(entry->mutable_symbols(), max_seq);
    AddLaunch(entry->mutable_steps(), first, 0, 1);
    v1::Step::Repeat* layers = entry->add_steps()->mutable_repeat();
    layers->set_count(kLayers);
    AddLaunch(layers->mutable_steps(), first + 1, 0, 2);
    AddLaunch(layers->mutable_steps(), first + 2, 2, 1);
    AddLaunch(entry->mutable_steps(), first + 3, 0, 1);
  }
  return program;
}

void InstallKernels(FakeGpu* gpu) {
  for (const char* phase : {"_prefill", "_decode"}) {
    gpu->kernels[absl::StrCat("clear", phase)] = [](const FakeGpu::Launch& launch) {
      std::fill_n(launch.Pointer<float>(1), launch.Int(3) * launch.Int(4) * kVocabulary, 0.0f);
    };
    gpu->kernels[absl::StrCat("append", phase)] = [](const FakeGpu::Launch& launch) {
      for (int i = 0; i < launch.Int(3) * launch.Int(4); ++i) {
        const int b = i / launch.Int(4), t = i % launch.Int(4);
        const int start = launch.Pointer<int32_t>(2)[b];
        ASSERT_TRUE(start >= 0 && start <= launch.Int(5)) << start;
        launch.Pointer<float>(1)[b * kCapacity + start + t] =
            static_cast<float>(launch.Pointer<int32_t>(0)[i]);
      }
    };
    gpu->kernels[absl::StrCat("sum", phase)] = [](const FakeGpu::Launch& launch) {
      for (int i = 0; i < launch.Int(3) * launch.Int(4); ++i) {
        const int b = i / launch.Int(4), t = i % launch.Int(4);
        const float* cache = launch.Pointer<float>(0) + b * kCapacity;
        launch.Pointer<float>(1)[i * kVocabulary] +=
            std::accumulate(cache, cache + launch.Pointer<int32_t>(2)[b] + t + 1, 0.0f);
      }
    };
    gpu->kernels[absl::StrCat("finish", phase)] = [](const FakeGpu::Launch& launch) {
      for (int i = 0; i < launch.Int(3) * launch.Int(4); ++i) {
        float* row = launch.Pointer<float>(1) + i * kVocabulary;
        const int chosen = static_cast<int>(row[0]) % kVocabulary;
        for (int c = 0; c < kVocabulary; ++c) row[c] = c == chosen ? 1.0f : 0.0f;
      }
    };
  }
}

int64_t NextOf(const std::vector<int64_t>& tokens) {
  return kLayers * std::accumulate(tokens.begin(), tokens.end(), int64_t{0}) % kVocabulary;
}

class GeneratorTest : public testing::Test {
 protected:
  absl::Status Load(const v1::Program& program) {
    gpu_.emplace(program);
    InstallKernels(&*gpu_);
    auto loaded = Runtime::Load(gpu_->driver(), {program, gpu_->Cubins()}, 0);
    if (!loaded.ok()) return loaded.status();
    runtime_ = *std::move(loaded);
    return runtime_->Prepare(nullptr);
  }

  std::optional<FakeGpu> gpu_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(GeneratorTest, ContinuesAPromptThroughTheCache) {
  ASSERT_THAT(Load(CachedProgram()), Ok());
  for (std::vector<int64_t> tokens : {std::vector<int64_t>{5}, {1, 2, 3}, {6, 5, 4, 3, 2}}) {
    auto generator = Generator::Create(*runtime_);
    ASSERT_THAT(generator, Ok());
    gpu_->launches.clear();
    auto logits = (*generator)->Feed({tokens});  // in calls of at most kMaxSeq
    for (int step = 0; step < 6; ++step) {
      ASSERT_THAT(logits, Ok());
      auto token = PickToken((*logits)[0], 0, nullptr);
      ASSERT_THAT(token, Ok());
      EXPECT_EQ(*token, NextOf(tokens)) << "after " << tokens.size() << " tokens";
      EXPECT_EQ((*generator)->length(0), static_cast<int64_t>(tokens.size()));
      tokens.push_back(*token);
      gpu_->launches.clear();
      logits = (*generator)->Feed({{*token}});
      ASSERT_EQ(gpu_->launches.size(), 2u + 2 * kLayers);
      for (const FakeGpu::Launch& launch : gpu_->launches) {
        EXPECT_NE(launch.name.find("_decode"), std::string::npos) << launch.name;
        EXPECT_EQ(launch.Int(5), static_cast<int>(tokens.size()) - 1) << launch.name;
      }
    }
  }
  runtime_.reset();
  EXPECT_TRUE(gpu_->allocations.empty());
}

// Prompts of one, three and five tokens: the program takes at most three in a call.
TEST_F(GeneratorTest, SequencesOfUnequalLengths) {
  ASSERT_THAT(Load(CachedProgram()), Ok());
  auto generator = Generator::Create(*runtime_, 3);
  ASSERT_THAT(generator, Ok());
  Generator::Tokens tokens = {{5}, {1, 2, 3}, {6, 5, 4, 3, 2}}, next = tokens;
  for (int step = 0; step < 9; ++step) {
    auto logits = (*generator)->Feed(next);
    ASSERT_THAT(logits, Ok());
    ASSERT_EQ(logits->size(), 3u);
    for (size_t b = 0; b < 3; ++b) {
      EXPECT_EQ((*logits)[b].empty(), next[b].empty());
      EXPECT_EQ((*generator)->length(b), static_cast<int64_t>(tokens[b].size()));
      if (next[b].empty()) continue;
      auto token = PickToken((*logits)[b], 0, nullptr);
      ASSERT_THAT(token, Ok());
      EXPECT_EQ(*token, NextOf(tokens[b])) << "sequence " << b << ", step " << step;
    }
    for (size_t b = 0; b < 3; ++b) {  // the last has ended after four steps, the second pauses
      next[b].clear();
      if ((b == 2 && step > 3) || (b == 1 && step % 3 == 1)) continue;
      next[b].push_back((step + 3 * static_cast<int>(b)) % kVocabulary);
      tokens[b].push_back(next[b][0]);
    }
  }
}

TEST_F(GeneratorTest, RefusesWhatTheProgramIsNotCompiledFor) {
  ASSERT_THAT(Load(CachedProgram()), Ok());
  auto generator = Generator::Create(*runtime_);
  ASSERT_THAT(generator, Ok());
  EXPECT_THAT((*generator)->Feed({{}}), Fails(StatusCode::kInvalidArgument, "at least one"));
  EXPECT_THAT((*generator)->Feed({{1}, {1}}),
              Fails(StatusCode::kInvalidArgument, "expected those of 1 sequences, got 2"));
  EXPECT_THAT(Generator::Create(*runtime_, kMaxBatch + 1),
              Fails(StatusCode::kInvalidArgument,
                    "sequences: got 4, the program is compiled for "
                    "batch 1..3"));
  EXPECT_THAT((*generator)->Feed({{1, kVocabulary}}),
              Fails(StatusCode::kInvalidArgument, "token 7 is outside the vocabulary of 7"));
  EXPECT_THAT((*generator)->Feed({{-1}}), Fails(StatusCode::kInvalidArgument, "token -1"));
  EXPECT_TRUE(gpu_->launches.empty());
  for (int i = 0; i <= kMaxPast; ++i) ASSERT_THAT((*generator)->Feed({{1}}), Ok());
  EXPECT_THAT((*generator)->Feed({{1}}),
              Fails(StatusCode::kOutOfRange,
                    "sequence 0 has 13 tokens, the program is compiled for at most 12"));
  EXPECT_THAT(runtime_->WorkspaceBytes("decode", {{"batch", 1}, {"seq", 2}, {"past", 1}}),
              Fails(StatusCode::kInvalidArgument,
                    "symbol seq = 2, the entry point decode is compiled for 1..1"));
  EXPECT_THAT(runtime_->WorkspaceBytes("prefill", {{"batch", 1}, {"seq", 2}, {"past", 1}}), Ok());
}

TEST_F(GeneratorTest, AGraphOfDecodeMovesOnFromTokenToToken) {
  ASSERT_THAT(Load(CachedProgram()), Ok());
  alignas(256) int32_t id = 0, length = 0;
  alignas(256) float logits[kVocabulary];
  alignas(256) float caches[kLayers][64];
  alignas(256) char workspace[256];
  std::fill_n(&caches[0][0], kLayers * 64, NAN);
  Call call;
  call.entry = "decode";
  call.symbols = {{"batch", 1}, {"seq", 1}, {"past", 0}};
  call.tensors["input_ids"] = {reinterpret_cast<CUdeviceptr>(&id), 4};
  call.tensors["past_lengths"] = {reinterpret_cast<CUdeviceptr>(&length), 4};
  call.tensors["logits"] = {reinterpret_cast<CUdeviceptr>(logits), sizeof(logits)};
  for (int layer = 0; layer < kLayers; ++layer) {
    call.tensors[absl::StrCat("layers.", layer, ".cache")] = {
        reinterpret_cast<CUdeviceptr>(caches[layer]), 4 * kCapacity};
  }
  call.workspace = {reinterpret_cast<CUdeviceptr>(workspace), 256};
  auto graph = runtime_->Capture(call);
  ASSERT_THAT(graph, Ok());
  std::vector<int64_t> tokens;
  for (int step = 0; step < 5; ++step) {
    id = 3 + step % 4;
    tokens.push_back(id);
    call.symbols["past"] = length = step;
    ASSERT_THAT((*graph)->SetSymbols(call.symbols), Ok());
    ASSERT_THAT((*graph)->Launch(nullptr), Ok());
    EXPECT_EQ(std::max_element(logits, logits + kVocabulary) - logits, NextOf(tokens)) << step;
  }
  EXPECT_EQ(gpu_->nodes_updated, 5 * (2 + 2 * kLayers))
      << "one call for each kernel that takes past";
  call.symbols["past"] = kMaxPast + 1;
  EXPECT_THAT((*graph)->SetSymbols(call.symbols),
              Fails(StatusCode::kInvalidArgument, "compiled for 0..12"));
}

TEST_F(GeneratorTest, ASmallerPastIsTakenByTheSameLaunchList) {
  ASSERT_THAT(Load(CachedProgram()), Ok());
  auto first = Generator::Create(*runtime_), second = Generator::Create(*runtime_);
  ASSERT_THAT(first, Ok());
  ASSERT_THAT(second, Ok());
  std::vector<int64_t> a = {3, 1}, b = {2, 6, 6};
  auto of_a = (*first)->Feed({a}), of_b = (*second)->Feed({b});
  for (int step = 0; step < 4; ++step) {  // two sequences by turns, each with a cache of its own
    for (auto [generator, tokens, logits] :
         {std::tuple(&*first, &a, &of_a), std::tuple(&*second, &b, &of_b)}) {
      ASSERT_THAT(*logits, Ok());
      auto token = PickToken((**logits)[0], 0, nullptr);
      ASSERT_THAT(token, Ok());
      EXPECT_EQ(*token, NextOf(*tokens));
      tokens->push_back(*token);
      *logits = (*generator)->Feed({{*token}});
    }
  }
}

TEST(Generator, WantsACache) {
  const v1::Program plain = TinyProgram();
  FakeGpu gpu(plain);
  auto runtime = Runtime::Load(gpu.driver(), {plain, gpu.Cubins()}, 0);
  ASSERT_THAT(runtime, Ok());
  EXPECT_THAT(Generator::Create(**runtime),
              Fails(StatusCode::kFailedPrecondition, "no key/value cache"));
}

TEST(EntryPointSymbols, MustNameEverySymbolOnce) {
  v1::Program program = CachedProgram();
  EXPECT_THAT(CheckProgram(program), Ok());
  program.mutable_entry_points(1)->mutable_symbols()->RemoveLast();
  EXPECT_THAT(CheckProgram(program),
              Fails(StatusCode::kInvalidArgument, "entry_points[1]: symbols: expected each"));
  program.mutable_entry_points(1)->clear_symbols();
  EXPECT_THAT(CheckProgram(program), Ok()) << "without ranges the program's hold";
}

TEST(PickToken, TakesTheLikeliestOrDraws) {
  std::mt19937_64 random(1);
  EXPECT_EQ(*PickToken({0.5f, 3.0f, -1.0f, 3.0f}, 0, &random), 1) << "the first of equals";
  EXPECT_THAT(PickToken({0.5f, NAN}, 0, &random),
              Fails(StatusCode::kInternal, "the logit of token 1 is not a number"));
  int drawn[3] = {};
  for (int i = 0; i < 3000; ++i) ++drawn[*PickToken({0.0f, std::log(2.0f), -INFINITY}, 1, &random)];
  EXPECT_NEAR(drawn[0], 1000, 120);
  EXPECT_NEAR(drawn[1], 2000, 120);
  EXPECT_EQ(drawn[2], 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*PickToken({0.0f, 1.0f}, 0.01, &random), 1);
}

}  // namespace
}  // namespace hackc::client

// SPDX-License-Identifier: MIT
#include "compiler/compile.h"

#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hackc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

CompileRequest Request(const std::string& model) {
  std::ifstream file(absl::StrCat(HACKC_SOURCE_DIR, "/models/", model, ".json"));
  CompileRequest request;
  request.name = model;
  request.config_json = nlohmann::json::parse(file).at("config").dump();
  return request;
}

// Of the whole process, all threads: what a busy machine does not change.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string Text(const program::DimExpr& e) {
  std::string text = absl::StrCat(static_cast<int>(e.op), ":", e.value, e.symbol, "(");
  for (const program::DimExpr& arg : e.args) text += Text(arg);
  return text + ")";
}

void Append(const std::vector<program::Step>& steps, std::string& out) {
  for (const program::Step& step : steps) {
    absl::StrAppend(&out, step.repeat_count, "x", step.launch.kernel);
    for (const program::BufferRef& ref : step.launch.args) absl::StrAppend(&out, " ", ref.buffer);
    out += "[";
    Append(step.steps, out);
    out += "]";
  }
}

// Everything in a plan but its times.
std::string Text(const Plan& plan) {
  std::string out = plan.graph_text + plan.tensor_text;
  for (const KernelSource& kernel : plan.kernels) {
    for (const auto& [name, value] : kernel.key_fields)
      absl::StrAppend(&out, name, "=", value, "\n");
    for (const auto& [level, text] : kernel.ir) absl::StrAppend(&out, level, ": ", text);
    for (const program::DimExpr& e : kernel.kernel.grid) out += Text(e);
    out += Text(kernel.kernel.bytes_moved) + Text(kernel.kernel.operations);
    for (const program::Param& p : kernel.kernel.params)
      absl::StrAppend(&out, p.name, p.offset, ",", p.alignment);
    absl::StrAppend(&out, kernel.kernel.dynamic_shared_bytes, " ", kernel.kernel.block[0], "\n");
  }
  for (const program::Buffer& buffer : plan.program.buffers) {
    absl::StrAppend(&out, buffer.id, buffer.name, static_cast<int>(buffer.kind), buffer.weight_name,
                    buffer.repeat_count, Text(buffer.offset), buffer.data, "\n");
  }
  Append(plan.program.prepare, out);
  for (const program::EntryPoint& entry : plan.program.entry_points) Append(entry.steps, out);
  return out;
}

TEST(Compile, QwenForEveryArch) {
  auto archs = SupportedArchs();
  ASSERT_TRUE(archs.ok()) << archs.status();
  EXPECT_THAT(*archs, ElementsAre("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"));
  CompileRequest request = Request("qwen2.5-7b");
  for (const std::string& arch : *archs) {
    request.arch = arch;
    double start = CpuSeconds();
    auto plan = PlanProgram(request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->program.arch, arch);
    EXPECT_EQ(plan->program.dtype, program::DType::kBFloat16);
    for (const KernelSource& kernel : plan->kernels) {
      auto cubin = CompileKernel(kernel);
      ASSERT_TRUE(cubin.ok()) << kernel.kernel.name << ": " << cubin.status() << "\n"
                              << kernel.cuda;
      EXPECT_EQ(cubin->warnings, "") << kernel.kernel.name;
      EXPECT_EQ(cubin->spill_bytes, 0u) << kernel.kernel.name << " on " << arch;
      EXPECT_EQ(cubin->static_shared_bytes, 0u) << kernel.kernel.name;
      EXPECT_GT(cubin->registers, 0u);
      EXPECT_LE(cubin->registers, 255u);
    }
    // The bar is 10 s on two cores, cold.
    EXPECT_LT(CpuSeconds() - start, 20) << arch;
  }
}

// Blocks meant to share a multiprocessor say so in their launch bounds, have the registers for it,
// and spill none.
TEST(Compile, EveryDType) {
  for (program::DType dtype :
       {program::DType::kFloat32, program::DType::kFloat16, program::DType::kBFloat16}) {
    int shared = 0;
    CompileRequest request = Request("tinyllama-1.1b");
    request.dtype = dtype;
    request.batch = {1, 4};
    auto plan = PlanProgram(request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->program.dtype, dtype);
    for (const KernelSource& kernel : plan->kernels) {
      auto cubin = CompileKernel(kernel);
      ASSERT_TRUE(cubin.ok()) << kernel.kernel.name << ": " << cubin.status();
      EXPECT_EQ(cubin->spill_bytes, 0u) << kernel.kernel.name;
      const uint32_t threads = kernel.kernel.block[0];
      if (!absl::StrContains(kernel.cuda, absl::StrCat("__launch_bounds__(", threads, ", 2)")))
        continue;
      ++shared;
      EXPECT_LE(cubin->registers * 2 * threads, 65536u) << kernel.kernel.name;
    }
    EXPECT_GE(shared,
              10);  // four products of a layer for each range of prefill, less float32's largest
  }
}

TEST(Compile, DepthAddsNoKernelAndNoTime) {
  auto measured = [](int layers) {
    CompileRequest request = Request("qwen2.5-7b");
    auto config = nlohmann::json::parse(request.config_json);
    config["num_hidden_layers"] = layers;
    request.config_json = config.dump();
    double start = CpuSeconds();
    auto plan = PlanProgram(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return std::pair(*std::move(plan), CpuSeconds() - start);
  };
  auto [few, few_seconds] = measured(28);
  auto [many, many_seconds] = measured(80);
  ASSERT_EQ(few.kernels.size(), many.kernels.size());
  // The same texts: NVRTC, nearly all of the time, has the same work.
  for (size_t i = 0; i < few.kernels.size(); ++i)
    EXPECT_EQ(few.kernels[i].key_fields, many.kernels[i].key_fields);
  EXPECT_LT(many_seconds, 1.1 * few_seconds + 0.1);
  std::set<uint32_t> repeats;
  for (const program::Step& step : many.program.entry_points[0].steps)
    repeats.insert(step.repeat_count);
  EXPECT_THAT(repeats, ElementsAre(0u, 80u));
}

TEST(Compile, ACacheGivesPrefillAndDecodeOverTheSameTensors) {
  CompileRequest request = Request("tinyllama-1.1b");
  request.seq = {1, 100};
  auto alone = PlanProgram(request);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->program.entry_points.size(), 1u);
  request.past = {0, 1000};
  auto plan = PlanProgram(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const program::Program& program = plan->program;
  ASSERT_EQ(program.entry_points.size(), 2u);
  const program::EntryPoint &prefill = program.entry_points[0], &decode = program.entry_points[1];
  EXPECT_EQ(prefill.name, "prefill");
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(prefill.inputs, decode.inputs);
  EXPECT_EQ(prefill.outputs, decode.outputs);
  EXPECT_THAT(decode.symbols,
              ElementsAre(program::Symbol{"batch", 1, 1}, program::Symbol{"seq", 1, 1},
                          program::Symbol{"past", 0, 1000}));
  EXPECT_EQ(prefill.symbols[1], (program::Symbol{"seq", 1, 100}));
  EXPECT_EQ(program.symbols, prefill.symbols);
  // Weights are prepared once.
  std::string prepare, prepare_alone;
  Append(program.prepare, prepare);
  Append(alone->program.prepare, prepare_alone);
  EXPECT_EQ(prepare.size(), prepare_alone.size());
  std::map<std::string, int> names;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.kind == program::Buffer::Kind::kWorkspace) continue;
    EXPECT_EQ(++names[buffer.name], 1) << buffer.name;
    if (buffer.kind != program::Buffer::Kind::kState) continue;
    EXPECT_EQ(buffer.repeat_count, 22u);
    EXPECT_EQ(program::Evaluate(buffer.shape[1], {}), 1100);
  }
  EXPECT_EQ(names.count("key_cache"), 1u);
  EXPECT_EQ(names.count("value_cache"), 1u);
  // Every kernel of decode is proven for one token and says so.
  std::set<uint32_t> of_decode;
  std::function<void(const std::vector<program::Step>&)> collect = [&](const auto& steps) {
    for (const program::Step& step : steps) {
      if (step.repeat_count == 0) of_decode.insert(step.launch.kernel);
      collect(step.steps);
    }
  };
  collect(decode.steps);
  for (uint32_t kernel : of_decode) {
    for (const program::Symbol& symbol : program.kernels[kernel].valid) {
      EXPECT_TRUE(symbol.name != "seq" || symbol.max == 1) << program.kernels[kernel].name;
    }
  }
  EXPECT_GT(program.kernels.size(), alone->program.kernels.size());
  std::set<std::string> kernel_names;
  for (const KernelSource& kernel : plan->kernels) {
    EXPECT_TRUE(kernel_names.insert(kernel.kernel.name).second) << kernel.kernel.name;
    auto cubin = CompileKernel(kernel);
    EXPECT_TRUE(cubin.ok()) << kernel.kernel.name << ": " << cubin.status();
  }
}

TEST(Compile, PagesAndOneRowOfLogits) {
  CompileRequest request = Request("tinyllama-1.1b");
  request.batch = {1, 4};
  request.seq = {1, 512};
  request.past = {0, 1000};
  request.page_size = 16;
  request.last_logits = true;
  request.layers = 2;
  auto plan = PlanProgram(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const program::Program& program = plan->program;
  const auto tensors = [&](const std::vector<uint32_t>& ids) {
    std::vector<std::string> out;
    for (uint32_t id : ids) {
      out.push_back(program.buffers[id].name);
      for (const program::DimExpr& extent : program.buffers[id].shape) {
        out.back() += absl::StrCat(
            " ", program::Evaluate(extent, {{"batch", 3}, {"seq", 7}, {"past", 9}, {"pages", 50}}));
      }
    }
    return out;
  };
  ASSERT_EQ(program.entry_points.size(), 4u);
  for (const program::EntryPoint& entry : program.entry_points) {
    const bool prefill = entry.name == "prefill";
    std::vector<std::string> expected = {"input_ids 3 7", "past_lengths 3", "page_table 3 95"};
    if (prefill) expected.push_back("last_positions 3");
    EXPECT_EQ(tensors(entry.inputs), expected) << entry.name;
    EXPECT_THAT(tensors(entry.outputs), ElementsAre("logits 3 1 32000"));
    EXPECT_EQ(entry.symbols[3], (program::Symbol{"pages", 1, 4 * 95}));
  }
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.kind != program::Buffer::Kind::kState) continue;
    EXPECT_THAT(tensors({buffer.id}), ElementsAre(buffer.name + " 50 16 4 64"));
  }
  for (const KernelSource& kernel : plan->kernels) {
    auto cubin = CompileKernel(kernel);
    EXPECT_TRUE(cubin.ok()) << kernel.kernel.name << ": " << cubin.status();
  }
  request.page_size = 1513;
  EXPECT_THAT(PlanProgram(request).status().message(), HasSubstr("page_size: expected 0"));
}

TEST(Compile, ShortPromptsAndOneSequenceAFewAndManyHaveKernelsOfTheirOwn) {
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  auto ranges = [](const CompileRequest& request, std::string_view name, size_t symbol) {
    auto plan = PlanProgram(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    Ranges found;
    for (const program::EntryPoint& entry : plan->program.entry_points) {
      const program::Symbol& given = entry.symbols[symbol];
      if (entry.name == name) found.push_back({given.min, given.max});
    }
    return found;
  };
  auto batches = [&](frontend::ShapeRange batch) {
    CompileRequest request = Request("tinyllama-1.1b");
    request.batch = batch;
    request.past = {0, 1000};
    return ranges(request, "decode", 0);
  };
  auto lengths = [&](frontend::ShapeRange seq) {
    CompileRequest request = Request("tinyllama-1.1b");
    request.seq = seq;
    return ranges(request, "prefill", 1);
  };
  EXPECT_EQ(batches({1, 64}), (Ranges{{1, 1}, {2, 8}, {9, 16}, {17, 64}}));
  EXPECT_EQ(batches({1, 4}), (Ranges{{1, 1}, {2, 4}}));
  EXPECT_EQ(batches({3, 8}), (Ranges{{3, 8}}));
  EXPECT_EQ(batches({12, 12}), (Ranges{{12, 12}}));
  EXPECT_EQ(lengths({1, 2048}), (Ranges{{1, 128}, {129, 1024}, {1025, 2048}}));
  EXPECT_EQ(lengths({1, 128}), (Ranges{{1, 128}}));
  EXPECT_EQ(lengths({129, 500}), (Ranges{{129, 500}}));
}

TEST(Compile, TheSameRequestGivesTheSamePlan) {
  auto first = PlanProgram(Request("qwen2.5-0.5b")), second = PlanProgram(Request("qwen2.5-0.5b"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Text(*first), Text(*second));
}

// `text` without what says the kernel's name: its entry point and the comment above it.
std::string WithoutName(const std::string& text, const std::string& entry) {
  std::string bare;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "// ")) absl::StrAppend(&bare, line, "\n");
  }
  return absl::StrReplaceAll(bare, {{entry + "(", "entry("}});
}

// Kernels of two ranges are two, by their names and what they are valid for; where their texts are
// the same they have one key, and NVRTC runs once.
TEST(Compile, EqualTextsHaveOneKey) {
  CompileRequest request = Request("qwen2.5-0.5b");
  request.past = {0, 2048};
  request.batch = {1, 16};
  auto plan = PlanProgram(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, std::set<KeyFields>> keys;
  for (const KernelSource& kernel : plan->kernels)
    keys[WithoutName(kernel.cuda, kernel.kernel.entry)].insert(kernel.key_fields);
  for (const auto& [text, fields] : keys) EXPECT_EQ(fields.size(), 1u) << text;
  EXPECT_LT(keys.size() + 10, plan->kernels.size());
}

TEST(Compile, APlanHoldsAllThatAClientAndAPersonNeed) {
  auto plan = PlanProgram(Request("tinyllama-1.1b"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->graph_text, HasSubstr("attention("));
  EXPECT_THAT(plan->tensor_text, HasSubstr("contract"));
  ASSERT_EQ(plan->program.kernels.size(), plan->kernels.size());
  std::set<std::string> names;
  for (size_t i = 0; i < plan->kernels.size(); ++i) {
    const KernelSource& kernel = plan->kernels[i];
    EXPECT_EQ(plan->program.kernels[i].name, kernel.kernel.name);
    EXPECT_TRUE(names.insert(kernel.kernel.name).second) << kernel.kernel.name;
    EXPECT_THAT("hackc_" + kernel.kernel.name, StartsWith(kernel.kernel.entry));
    EXPECT_THAT(kernel.cuda, HasSubstr(kernel.kernel.entry + "("));
    EXPECT_NE(kernel.kernel.computes, "");
    for (const char* level : {"loop", "tile", "kernel", "cuda"})
      EXPECT_EQ(kernel.ir.count(level), 1u) << level;
    EXPECT_FALSE(kernel.times.empty());
    int64_t work = Evaluate(kernel.kernel.bytes_moved, {{"batch", 1}, {"seq", 128}});
    EXPECT_GT(work, 0) << kernel.kernel.name;
  }
  for (const program::Buffer& buffer : plan->program.buffers) {
    bool constant = buffer.kind == program::Buffer::Kind::kConstant;
    bool weight = buffer.kind == program::Buffer::Kind::kWeight;
    EXPECT_EQ(buffer.data.empty(), !constant) << buffer.name;
    EXPECT_TRUE(!weight || !buffer.weight_name.empty()) << buffer.name;
  }
  const program::EntryPoint& entry = plan->program.entry_points[0];
  EXPECT_EQ(plan->program.buffers[entry.inputs[0]].name, "input_ids");
  EXPECT_EQ(plan->program.buffers[entry.outputs[0]].kind, program::Buffer::Kind::kOutput);
}

TEST(Compile, EveryKernelHasAReferenceOfTheSameParameters) {
  CompileRequest request = Request("tinyllama-1.1b");
  request.past = {0, 300};
  request.batch = {1, 4};
  auto plan = PlanProgram(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  bool indexed = false;
  int64_t longest = 0;
  for (const KernelSource& kernel : plan->kernels) {
    SCOPED_TRACE(kernel.kernel.name);
    auto reference = ReferenceKernel(kernel.ir.at("loop"), "sm_90a");
    ASSERT_TRUE(reference.ok()) << reference.status();
    auto cubin = CompileKernel(reference->source);
    ASSERT_TRUE(cubin.ok()) << cubin.status() << reference->source.cuda;
    const std::vector<program::Param>& params = reference->source.kernel.params;
    ASSERT_EQ(params.size(), kernel.kernel.params.size());
    size_t buffers = 0;
    for (size_t i = 0; i < params.size(); ++i) {
      EXPECT_EQ(params[i].name, kernel.kernel.params[i].name);
      EXPECT_EQ(params[i].offset, kernel.kernel.params[i].offset);
      if (params[i].kind != program::Param::Kind::kBuffer) continue;
      const program::BufferUse& use = reference->buffers.at(buffers++);
      EXPECT_EQ(use.written, kernel.kernel.params[i].written);
      if (use.dtype == program::DType::kInt32 && use.below == program::DimExpr{.value = 32000})
        indexed = true;
    }
    EXPECT_EQ(buffers, reference->buffers.size());
    if (absl::StartsWith(kernel.kernel.name, "attention_prefill")) {
      longest =
          std::max(longest, reference->rounding.longest_reduction);  // of a range of lengths each
      EXPECT_EQ(reference->rounding.coarsest, program::DType::kBFloat16);
    }
    if (kernel.kernel.name == "lm_head") {
      EXPECT_EQ(reference->rounding.coarsest, program::DType::kFloat32);
    }
  }
  EXPECT_EQ(longest, 2048 + 300);
  EXPECT_TRUE(indexed) << "token numbers are below the vocabulary's size";
  EXPECT_TRUE(absl::IsInvalidArgument(ReferenceKernel("no IR", "sm_90a").status()));
}

TEST(Compile, KeysHoldWhatMattersAndNothingElse) {
  CompileRequest request = Request("qwen2.5-0.5b");
  auto key = [](const CompileRequest& r) {
    auto fields = ProgramKeyFields(r);
    EXPECT_TRUE(fields.ok()) << fields.status();
    return fields.value_or(KeyFields());
  };
  const KeyFields base = key(request);
  std::vector<std::string> names;
  for (const auto& [name, value] : base) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("kind", "format", "compiler", "arch", "options", "graph"));
  CompileRequest renamed = request;
  renamed.name = "another";
  EXPECT_EQ(key(renamed), base);
  CompileRequest spelled = request;
  spelled.config_json = nlohmann::json::parse(request.config_json).dump(4);
  EXPECT_EQ(key(spelled), base);
  CompileRequest defaults = request;
  defaults.seq = {1, 2048};
  EXPECT_EQ(key(defaults), base);
  std::vector<CompileRequest> others(6, request);
  others[0].arch = "sm_80";
  others[1].seq = {1, 2047};
  others[2].dtype = program::DType::kFloat32;
  others[3].layers = 3;
  others[4].batch = {1, 2};
  auto config = nlohmann::json::parse(request.config_json);
  config["rms_norm_eps"] = 1e-5;
  others[5].config_json = config.dump();
  for (const CompileRequest& other : others) EXPECT_NE(key(other), base);
}

TEST(Compile, ErrorsNameTheFieldAndWhatIsAccepted) {
  auto error = [](const CompileRequest& request) {
    absl::Status planned = PlanProgram(request).status();
    EXPECT_EQ(planned, ProgramKeyFields(request).status());
    EXPECT_EQ(planned.code(), absl::StatusCode::kInvalidArgument);
    return std::string(planned.message());
  };
  CompileRequest request = Request("qwen2.5-0.5b");
  request.arch = "sm_35";
  EXPECT_THAT(error(request), HasSubstr("arch"));
  EXPECT_THAT(error(request), HasSubstr("sm_35"));
  EXPECT_THAT(error(request), HasSubstr("sm_90a"));
  request = Request("qwen2.5-0.5b");
  request.dtype = program::DType::kInt32;
  EXPECT_EQ(error(request), "dtype: expected float32, bfloat16 or float16, got i32");
  request = Request("qwen2.5-0.5b");
  request.seq = {8, 4};
  EXPECT_THAT(error(request), HasSubstr("seq: expected 1 <= min <= max"));
  request.seq = {-1, 4};
  EXPECT_THAT(error(request), HasSubstr("got -1..4"));
  request = Request("qwen2.5-0.5b");
  request.config_json = "[1, 2";
  EXPECT_THAT(error(request), HasSubstr("config"));
}

// Millions of columns have no room on y of the grid; OpenLLaMA-3B has heads of 100.
TEST(Compile, ShapesThatTheFirstScheduleDoesNotFit) {
  CompileRequest columns = Request("tinyllama-1.1b"), prompt = columns, heads = columns;
  auto config = nlohmann::json::parse(columns.config_json);
  config["vocab_size"] = 16'000'000;
  columns.config_json = config.dump();
  prompt.seq = {2, 2};
  config.update({{"vocab_size", 32000}, {"hidden_size", 3200}, {"num_key_value_heads", 32}});
  heads.config_json = config.dump();
  heads.dtype = program::DType::kFloat32;
  heads.past = {0, 2048};
  for (CompileRequest* request : {&columns, &prompt, &heads}) {
    request->layers = 1;
    auto plan = PlanProgram(*request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const char* const name = request == &columns ? "lm_head" : "attention";
    int compiled = 0;
    for (const KernelSource& kernel : plan->kernels) {
      if (!kernel.kernel.name.starts_with(name)) continue;
      auto cubin = CompileKernel(kernel);
      EXPECT_TRUE(cubin.ok()) << kernel.kernel.name << ": " << cubin.status();
      ++compiled;
    }
    EXPECT_GT(compiled, 0) << name;
  }
}

TEST(Compile, AGraphThatNoScheduleFitsIsRefusedForItsTarget) {
  const auto plan = PlanGraph(R"(hackc graph 1
module "wide heads"
symbol batch in 1..1
symbol seq in 1..32
input %q: f32[batch, seq, 1, 1024]
input %k: f32[batch, seq, 1, 1024]
input %v: f32[batch, seq, 1, 1024]

segment s: repeat 1 from 0 step 1 carry () {
  %y: f32[batch, seq, 1, 1024] = attention(%q, %k, %v, none) {scale = 0.5, window = 0, softcap = 0.0}
  yield (%y)
} -> (%out)

output (%out)
)",
                              "sm_86");
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      std::string(plan.status().message()),
      "target.arch: no known schedule fits sm_86; the last one tried: attention: schedule: 198912 "
      "bytes of shared memory, expected at most 101376");
}

TEST(Compile, AKernelWhoseTextIsBrokenReportsTheLog) {
  KernelSource source;
  source.kernel.entry = "k";
  source.kernel.arch = "sm_90a";
  source.cuda = "extern \"C\" __global__ void k() { missing(); }";
  auto cubin = CompileKernel(source);
  EXPECT_EQ(cubin.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(cubin.status().message()), HasSubstr("\"missing\" is undefined"));
  source.kernel.arch = "sm_20";
  EXPECT_EQ(CompileKernel(source).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace hackc

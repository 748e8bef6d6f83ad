// SPDX-License-Identifier: MIT
// A batch of sequences of unequal lengths, padded to one call's length, then decoded together: each
// is as it is alone in the Graph interpreter, whether its cache lies in a row or in pages, whose
// table has no page behind a sequence's end. At every level, with the entry points of a whole
// program at the lower ones.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "compiler/interp/graph_interpreter.h"
#include "compiler/interp/module_run.h"
#include "compiler/interp/tensor_interpreter.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/support/cat.h"
#include "tests/support/golden.h"
#include "tools/golden/program_run.h"

namespace hackc::golden {
namespace {

using interp::TensorData;
using Rows = std::vector<std::vector<double>>;

constexpr int64_t kBatch = 3, kSeq = 5, kSteps = 3, kMaxPast = 11, kMaxBatch = 4, kVocabulary = 96;
const Rows kPrompts = {{5, 80, 3, 44, 17}, {9}, {61, 2, 90, 7}};
const Rows kNext = {{1, 2, 3}, {50, 60, 70}, {33, 22, 11}};

using Runner = std::function<absl::StatusOr<Tensors>(const std::string& entry, Symbols, Tensors)>;

// On a Graph or Tensor module, whose states hold NaN at first.
template <typename Module, typename RunModule>
Runner RunOf(const Model& model, const Module& module, RunModule run_module) {
  return [&model, &module, run_module, states = std::make_shared<Tensors>()](
             const std::string&, Symbols symbols, Tensors inputs) -> absl::StatusOr<Tensors> {
    for (const auto& segment : module.segments) {
      for (const ir::SourceDecl& source : segment.sources) {
        if (source.kind != ir::SourceDecl::Kind::kState) continue;
        std::vector<int64_t> shape;
        for (const ir::Expr& extent : source.type.shape) {
          const auto* symbol = ir::As<ir::Symbol>(extent);
          shape.push_back(symbol ? symbols.at(symbol->name) : *ir::AsInt(extent));
        }
        for (int i = 0; i < segment.count; ++i) {
          states->try_emplace(
              interp::WithLayer(source.weight_name, segment.first_layer + i * segment.layer_step),
              TensorData::Filled(source.type.dtype, shape, NAN));
        }
      }
    }
    interp::RunInputs run;
    run.symbols = std::move(symbols);
    run.inputs = std::move(inputs);
    run.weights = model.WeightsByName();
    run.states = states.get();
    return run_module(module, run);
  };
}

class UnequalLengths : public testing::TestWithParam<std::tuple<std::string, int64_t>> {
 protected:
  absl::StatusOr<Plan> PlanOf(const Model& model, int64_t page_size, bool last_logits) {
    CompileRequest request;
    request.config_json = model.config_json;
    request.dtype = program::DType::kFloat32;
    request.batch = {1, kMaxBatch};
    request.seq = {1, kSeq};
    request.past = {0, kMaxPast};
    request.page_size = page_size;
    request.last_logits = last_logits;
    return PlanProgram(request);
  }

  // Logits of each sequence: after its prompt, and after each of its next tokens.
  absl::StatusOr<Rows> Alone(const Model& model) {
    HACKC_ASSIGN_OR_RETURN(const Plan plan, PlanOf(model, 0, false));
    HACKC_ASSIGN_OR_RETURN(const ir::GraphModule graph, ir::ParseGraph(plan.graph_text));
    Rows rows;
    for (size_t b = 0; b < kBatch; ++b) {
      const Runner run = RunOf(model, graph, interp::RunGraph);
      std::vector<double>& row = rows.emplace_back();
      auto length = static_cast<int64_t>(kPrompts[b].size());
      int64_t past = 0;
      for (int64_t i = 0; i <= kSteps; ++i) {
        TensorData ids{ir::DType::kI32, {1, length}, kPrompts[b]};
        if (i > 0) ids.values = {kNext[b][i - 1]};
        HACKC_ASSIGN_OR_RETURN(
            const Tensors outputs,
            run("", {{"batch", 1}, {"seq", length}, {"past", past}},
                {{"input_ids", ids},
                 {"past_lengths", TensorData::Filled(ir::DType::kI32, {1}, past)}}));
        const std::vector<double>& logits = outputs.at("logits").values;
        row.insert(row.end(), logits.end() - kVocabulary, logits.end());
        past += length;
        length = 1;
      }
    }
    return rows;
  }

  absl::StatusOr<Rows> Together(const Runner& run, int64_t page_size) {
    Tensors inputs;
    int64_t pages = 1;    // of the pool: as many as the program is compiled for
    if (page_size > 0) {  // pages for all that is fed, scattered; none or no possible ones behind
      const int64_t width = (kSeq + kMaxPast + page_size - 1) / page_size;
      pages = kMaxBatch * width;
      TensorData table = TensorData::Filled(ir::DType::kI32, {kBatch, width}, -1);
      for (int64_t b = 0, next = pages; b < kBatch; ++b) {
        const auto filled = static_cast<int64_t>(kPrompts[b].size()) + kSteps;
        for (int64_t i = 0; i < width; ++i) {
          if (i * page_size < filled) {
            table.At({b, i}) = static_cast<double>(--next);
          } else if (i % 2 == 0) {
            table.At({b, i}) = static_cast<double>(pages);
          }
        }
      }
      inputs["page_table"] = std::move(table);
    }
    Rows rows(kBatch);
    TensorData lengths = TensorData::Zeros(ir::DType::kI32, {kBatch});
    for (int64_t i = 0; i <= kSteps; ++i) {
      const int64_t seq = i == 0 ? kSeq : 1;
      TensorData ids = TensorData::Filled(ir::DType::kI32, {kBatch, seq}, 95);
      TensorData last = TensorData::Zeros(ir::DType::kI32, {kBatch});
      for (int64_t b = 0; b < kBatch; ++b) {
        const std::vector<double> fed = i == 0 ? kPrompts[b] : std::vector{kNext[b][i - 1]};
        std::copy(fed.begin(), fed.end(), ids.values.begin() + b * seq);
        last.At({b}) = static_cast<double>(fed.size()) - 1;
      }
      inputs["input_ids"] = std::move(ids);
      inputs["past_lengths"] = lengths;
      inputs["last_positions"] = last;
      const double past = *std::max_element(lengths.values.begin(), lengths.values.end());
      HACKC_ASSIGN_OR_RETURN(const Tensors outputs, run(i == 0 ? "prefill" : "decode",
                                                        {{"batch", kBatch},
                                                         {"seq", seq},
                                                         {"past", static_cast<int64_t>(past)},
                                                         {"pages", pages}},
                                                        inputs));
      const TensorData& logits = outputs.at("logits");
      if (logits.shape != std::vector<int64_t>{kBatch, 1, kVocabulary}) {
        return absl::InternalError("logits are not one row for each sequence");
      }
      for (int64_t b = 0; b < kBatch; ++b) {
        const auto row = logits.values.begin() + b * kVocabulary;
        rows[b].insert(rows[b].end(), row, row + kVocabulary);
        lengths.At({b}) += last.At({b}) + 1;
      }
    }
    return rows;
  }
};

TEST_P(UnequalLengths, EachIsAsAlone) {
  const auto& [name, page_size] = GetParam();
  absl::StatusOr<Model> model = test::LoadGolden(name);
  ASSERT_OK(model);
  const absl::StatusOr<Rows> alone = Alone(*model);
  ASSERT_OK(alone);
  absl::StatusOr<Plan> plan = PlanOf(*model, page_size, /*last_logits=*/true);
  ASSERT_OK(plan);
  auto graph = ir::ParseGraph(plan->graph_text);
  ASSERT_OK(graph);
  auto tensor = ir::ParseTensor(plan->tensor_text);
  ASSERT_OK(tensor);
  std::vector<std::pair<std::string, Runner>> levels = {
      {"graph", RunOf(*model, *graph, interp::RunGraph)},
      {"tensor", RunOf(*model, *tensor, interp::RunTensor)}};
  for (opt::Level level : {opt::Level::kLoop, opt::Level::kTile, opt::Level::kKernel}) {
    auto created =
        ProgramRun::Create(*plan, level, interp::Arithmetic::kExact, model->WeightsByName());
    ASSERT_OK(created);
    std::shared_ptr<ProgramRun> program = *std::move(created);
    levels.emplace_back(opt::Name(level), [program](const std::string& entry, Symbols symbols,
                                                    const Tensors& inputs) {
      return program->Run(entry, symbols, inputs);
    });
  }
  for (const auto& [level, run] : levels) {
    const absl::StatusOr<Rows> together = Together(run, page_size);
    ASSERT_TRUE(together.ok()) << level << ": " << together.status();
    for (size_t b = 0; b < kBatch; ++b) {
      EXPECT_LE(Difference((*together)[b], (*alone)[b]), 1e-10) << level << ", sequence " << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnequalLengths,
                         testing::Combine(testing::Values("llama", "qwen2", "mistral"),
                                          testing::Values(0, 1, 3, 4, 16)),
                         [](const auto& info) {
                           return Cat(std::get<0>(info.param), "_pages", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hackc::golden

// SPDX-License-Identifier: MIT
#include "tools/golden/check.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "compiler/interp/graph_interpreter.h"
#include "compiler/interp/tensor_interpreter.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"
#include "tools/golden/bounds.h"
#include "tools/golden/program_run.h"

namespace hackc::golden {
namespace {

using interp::Arithmetic;
using interp::TensorData;

ir::DType StorageOf(CheckedDType dtype) {
  switch (dtype) {
    case CheckedDType::kBFloat16: return ir::DType::kBF16;
    case CheckedDType::kFloat16: return ir::DType::kF16;
    default: return ir::DType::kF32;
  }
}

program::DType ProgramStorage(CheckedDType dtype) {
  switch (dtype) {
    case CheckedDType::kBFloat16: return program::DType::kBFloat16;
    case CheckedDType::kFloat16: return program::DType::kFloat16;
    default: return program::DType::kFloat32;
  }
}

Outcome Problem(const absl::Status& status) { return {.problem = std::string(status.message())}; }

int64_t PromptLength(const Model& model) { return model.expected.at("input_ids").size(); }
int64_t StepCount(const Model& model) { return model.expected.at("step_ids").size(); }

// Two sequences at once, the prompt and the prompt backwards: a first piece, the rest of it, a
// token more.
std::vector<Call> BatchedCalls(const Model& model) {
  const std::vector<double>& ids = model.expected.at("input_ids").values;
  const auto length = static_cast<int64_t>(ids.size()), first = (2 * length + 2) / 3;
  const double token = model.expected.at("step_ids").values[0];
  std::vector<Call> calls;
  for (const auto& [begin, end] :
       {std::pair{int64_t{0}, first}, {first, length}, {length, length + 1}}) {
    Call call{TensorData::Zeros(ir::DType::kI32, {2, end - begin}), begin};
    for (int64_t i = begin; i < end; ++i) {
      call.ids.At({0, i - begin}) = i < length ? ids[i] : token;
      call.ids.At({1, i - begin}) = i < length ? ids[length - 1 - i] : ids[0];
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

// Two tokens each of more sequences than a decode kernel for few of them takes; the second is the
// first again for every other one.
constexpr int64_t kManySequences = schedule::kFewRows + 1;
std::vector<Call> ManySequences(const Model& model) {
  const std::vector<double>& ids = model.expected.at("input_ids").values;
  std::vector<Call> calls;
  for (int64_t past : {0, 1}) {
    calls.push_back({TensorData::Zeros(ir::DType::kI32, {kManySequences, 1}), past});
    for (int64_t i = 0; i < kManySequences; ++i) {
      calls.back().ids.values[i] = ids[(i + past) % ids.size()];
      if (past > 0) calls.back().lengths.push_back(i % 2);
    }
  }
  return calls;
}

std::vector<Call> AllCalls(const Model& model) {
  std::vector<Call> calls = TrueCalls(model);
  if (TakesOneSequence(model)) return calls;
  for (Call& call : BatchedCalls(model)) calls.push_back(std::move(call));
  for (Call& call : ManySequences(model)) calls.push_back(std::move(call));
  return calls;
}

Symbols SymbolsOf(const Call& call) {
  return {{"batch", call.ids.shape[0]}, {"seq", call.ids.shape[1]}, {"past", call.past}};
}

// Runs calls on a Graph or Tensor module. The module must outlive it.
template <typename Module, typename RunModule>
RunCall RunOf(const Model& model, const Module& module, RunModule run_module, bool round,
              decltype(interp::RunInputs::observe) observe = nullptr) {
  auto states = std::make_shared<Tensors>();
  return [&module, run_module, round, observe, states,
          weights = model.WeightsByName()](const Call& call) -> absl::StatusOr<TensorData> {
    if (call.past == 0) states->clear();
    interp::RunInputs run;
    run.symbols = SymbolsOf(call);
    run.inputs = InputsOf(call);
    run.weights = weights;
    run.states = states.get();
    run.round_to_storage = round;
    run.observe = observe;
    HACKC_ASSIGN_OR_RETURN(Tensors outputs, run_module(module, run));
    return outputs.at("logits");
  };
}

// The largest difference between two ways to run the same calls.
absl::StatusOr<double> Compare(const std::vector<Call>& calls, const RunCall& run,
                               const RunCall& reference) {
  double largest = 0;
  for (const Call& call : calls) {
    HACKC_ASSIGN_OR_RETURN(const TensorData truth, reference(call));
    HACKC_ASSIGN_OR_RETURN(const TensorData logits, run(call));
    largest = std::max(largest, Difference(logits.values, truth.values));
  }
  return largest;
}

Outcome CheckGraph(const Model& model, const ir::GraphModule& graph, CheckedDType dtype,
                   double bound) {
  // Of the prompt: embedding, each layer's output, and the final norm's in the last's place.
  std::vector<TensorData> hidden;
  const auto observe = [&](const std::string& name, int, const TensorData& data) {
    if (name.starts_with("embedding") || name.starts_with("mlp_residual")) hidden.push_back(data);
    if (name.starts_with("final_norm") && !hidden.empty()) hidden.back() = data;
  };
  const RunCall run =
      RunOf(model, graph, interp::RunGraph, dtype != CheckedDType::kFloat64, observe);
  std::vector<TensorData> prompt_hidden;
  Outcome outcome = CheckAgainstTruth(
      model,
      [&](const Call& call) {
        absl::StatusOr<TensorData> logits = run(call);
        if (call.past == 0) prompt_hidden = hidden;
        return logits;
      },
      bound);
  for (size_t i = 0; model.expected.count(Cat("hidden_", i)); ++i) {
    if (i >= prompt_hidden.size()) return {.problem = Cat("the graph makes no hidden state ", i)};
    const std::vector<double>& truth = model.expected.at(Cat("hidden_", i)).values;
    outcome.error = std::max(outcome.error, Difference(prompt_hidden[i].values, truth));
  }
  if (TakesOneSequence(model)) return outcome;
  // The first row of a batch is the prompt and one step, whatever stands beside it.
  std::vector<double> row, truth = model.expected.at("logits").values;
  const std::vector<double>& steps = model.expected.at("step_logits").values;
  truth.insert(truth.end(), steps.begin(), steps.begin() + steps.size() / StepCount(model));
  for (const Call& call : BatchedCalls(model)) {
    const absl::StatusOr<TensorData> logits = run(call);
    if (!logits.ok()) return Problem(logits.status());
    row.insert(row.end(), logits->values.begin(), logits->values.begin() + logits->size() / 2);
  }
  outcome.error = std::max(outcome.error, Difference(row, truth));
  return outcome;
}

// Level loop, tile or kernel.
absl::StatusOr<double> CheckProgram(const Model& model, const Plan& plan,
                                    const ir::GraphModule& graph, CheckedLevel level, bool exact) {
  const Arithmetic arithmetic = exact                            ? Arithmetic::kExact
                                : level == CheckedLevel::kKernel ? Arithmetic::kHardware
                                                                 : Arithmetic::kStorage;
  const auto ir_level = *ir::FromName<opt::Level>(kCheckedLevelNames[static_cast<size_t>(level)]);
  HACKC_ASSIGN_OR_RETURN(const std::shared_ptr<ProgramRun> program,
                         ProgramRun::Create(plan, ir_level, arithmetic, model.WeightsByName()));
  const RunCall run = [&](const Call& call) -> absl::StatusOr<TensorData> {
    if (call.past == 0) program->ForgetStates();
    HACKC_ASSIGN_OR_RETURN(Tensors outputs,
                           program->Run(call.ids.shape[1] == 1 ? "decode" : "prefill",
                                        SymbolsOf(call), InputsOf(call)));
    return outputs.at("logits");
  };
  const RunCall reference = RunOf(model, graph, interp::RunGraph, !exact);
  return Compare(AllCalls(model), run, reference);
}

absl::StatusOr<Outcome> Check(const Model& model, CheckedLevel level, CheckedDType dtype,
                              program::DType storage) {
  const bool exact = dtype == CheckedDType::kFloat64;
  HACKC_ASSIGN_OR_RETURN(const Plan plan, PlanFor(model, storage));
  HACKC_ASSIGN_OR_RETURN(const ir::GraphModule graph, ir::ParseGraph(plan.graph_text));
  if (level == CheckedLevel::kGraph) {
    HACKC_ASSIGN_OR_RETURN(const double bound, TruthBound(model, dtype));
    return CheckGraph(model, graph, dtype, bound);
  }
  Outcome outcome{.bound = exact ? kReordered
                                 : StorageBound(graph, StorageOf(dtype),
                                                PromptLength(model) + StepCount(model))};
  if (level == CheckedLevel::kTensor) {
    HACKC_ASSIGN_OR_RETURN(const ir::TensorModule tensor, ir::ParseTensor(plan.tensor_text));
    const RunCall run = RunOf(model, tensor, interp::RunTensor, !exact);
    const RunCall reference = RunOf(model, graph, interp::RunGraph, !exact);
    HACKC_ASSIGN_OR_RETURN(outcome.error, Compare(AllCalls(model), run, reference));
  } else {
    HACKC_ASSIGN_OR_RETURN(outcome.error, CheckProgram(model, plan, graph, level, exact));
  }
  return outcome;
}

}  // namespace

Tensors InputsOf(const Call& call) {
  TensorData lengths =
      TensorData::Filled(ir::DType::kI32, {call.ids.shape[0]}, static_cast<double>(call.past));
  for (size_t b = 0; b < call.lengths.size(); ++b) {
    lengths.values[b] = static_cast<double>(call.lengths[b]);
  }
  return {{"input_ids", call.ids}, {"past_lengths", std::move(lengths)}};
}

std::vector<Call> TrueCalls(const Model& model) {
  const TensorData& prompt = model.expected.at("input_ids");
  std::vector<Call> calls{{prompt, 0}};
  for (double id : model.expected.at("step_ids").values) {
    const int64_t past = PromptLength(model) + static_cast<int64_t>(calls.size()) - 1;
    calls.push_back({TensorData::Filled(ir::DType::kI32, {1, 1}, id), past});
  }
  calls[0].ids.dtype = ir::DType::kI32;
  return calls;
}

bool TakesOneSequence(const Model& model) {
  return model.config_json.find("\"dynamic\"") != std::string::npos;
}
int64_t LongestPast(const Model& model) { return PromptLength(model) + StepCount(model) - 1; }
int64_t LongestCall(const Model& model) {
  return TakesOneSequence(model) ? LongestPast(model) + 1 : PromptLength(model);
}

absl::StatusOr<Plan> PlanFor(const Model& model, program::DType storage) {
  for (const char* name : {"input_ids", "logits", "step_ids", "step_logits"}) {
    if (!model.expected.count(name)) {
      return absl::InvalidArgumentError(Cat("expected.safetensors has no ", name));
    }
  }
  CompileRequest request;
  request.name = model.name;
  request.config_json = model.config_json;
  request.dtype = storage;
  request.batch = {1, TakesOneSequence(model) ? 1 : kManySequences};
  request.past = {0, LongestPast(model)};
  request.seq = {1, LongestCall(model)};
  return PlanProgram(request);
}

Outcome CheckAgainstTruth(const Model& model, const RunCall& run, double bound) {
  Outcome outcome{.bound = bound};
  std::vector<double> steps;
  for (const Call& call : TrueCalls(model)) {
    const absl::StatusOr<TensorData> logits = run(call);
    if (!logits.ok()) return Problem(logits.status());
    if (call.past == 0) {
      const std::vector<double>& truth = model.expected.at("logits").values;
      const size_t last = truth.size() / PromptLength(model);
      const size_t count = logits->values.size() == last ? last : truth.size();
      outcome.error = Difference(logits->values, {truth.end() - count, truth.end()});
    } else {
      steps.insert(steps.end(), logits->values.begin(), logits->values.end());
    }
  }
  outcome.error =
      std::max(outcome.error, Difference(steps, model.expected.at("step_logits").values));
  return outcome;
}

absl::StatusOr<double> TruthBound(const Model& model, CheckedDType dtype) {
  if (dtype == CheckedDType::kFloat64) return kTruthTolerance;
  HACKC_ASSIGN_OR_RETURN(const Plan plan, PlanFor(model, ProgramStorage(dtype)));
  HACKC_ASSIGN_OR_RETURN(const ir::GraphModule graph, ir::ParseGraph(plan.graph_text));
  return kTruthTolerance +
         StorageBound(graph, StorageOf(dtype), PromptLength(model) + StepCount(model));
}

Outcome CheckLevel(const Model& model, CheckedLevel level, CheckedDType dtype) {
  std::vector<program::DType> storages{ProgramStorage(dtype)};
  if (level == CheckedLevel::kKernel && dtype == CheckedDType::kFloat64) {
    storages.push_back(program::DType::kBFloat16);
  }
  Outcome worst;
  for (program::DType storage : storages) {
    absl::StatusOr<Outcome> outcome = absl::InternalError("");
    try {
      outcome = Check(model, level, dtype, storage);
    } catch (const std::exception& error) {
      outcome = absl::InternalError(error.what());
    }
    if (!outcome.ok()) return Problem(outcome.status());
    if (outcome->error >= worst.error) worst = *outcome;
  }
  return worst;
}

}  // namespace hackc::golden

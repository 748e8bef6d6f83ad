// SPDX-License-Identifier: MIT
#include "compiler/compile.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/cuda_emitter.h"
#include "compiler/fingerprint.h"
#include "compiler/frontend/frontend.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/plugin.h"
#include "compiler/program/kernel_contract.h"
#include "compiler/program/program_builder.h"
#include "compiler/program/reference_kernel.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/target.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/replay.h"
#include "compiler/support/status_macros.h"
#include "compiler/toolchain/nvrtc.h"

namespace hackc {
namespace {

constexpr char kKeyFormat[] = "1";
const std::string kPrefill = "prefill", kDecode = "decode";
constexpr int64_t kShortPrompt = 128, kMediumPrompt = 1024;  // tokens

// Runs `work`, which returns a StatusOr, for a target; what is thrown becomes INTERNAL.
auto OnTarget(const std::string& arch, auto&& work) -> decltype(work(schedule::Target())) {
  HACKC_ASSIGN_OR_RETURN(const schedule::Target target, schedule::FindTarget(arch));
  try {
    return work(target);
  } catch (const std::exception& error) {  // InternalError, or the standard library's
    return absl::InternalError(error.what());
  }
}

// A step on one kernel that is in no table of passes: hackc-opt knows it by this name.
auto Step(const char* name, const auto& before, auto&& work) {
  return Attempt(
      name, Cat("pass ", name, ", kernel ", before.fn.name), [&] { return ir::Print(before); },
      work);
}

class Clock {
 public:
  explicit Clock(std::vector<StageTime>& times) : times_(times) {}
  void Lap(std::string stage) {
    auto now = std::chrono::steady_clock::now();
    times_.push_back(
        {std::move(stage), std::chrono::duration<double, std::milli>(now - last_).count()});
    last_ = now;
  }
  // Its parts say it in more detail.
  void Laps(const std::vector<std::pair<std::string, double>>& parts, const std::string& of = "") {
    for (const auto& [part, milliseconds] : parts) times_.push_back({of + part, milliseconds});
    last_ = std::chrono::steady_clock::now();
  }

 private:
  std::vector<StageTime>& times_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

absl::StatusOr<ir::GraphModule> BuildGraph(const CompileRequest& request) {
  return frontend::BuildGraph(request.config_json, {request, program::ToIr(request.dtype)});
}

KeyFields KernelKeyFields(const std::string& arch, const std::string& cuda) {
  return {{"kind", "kernel"},
          {"format", kKeyFormat},
          {"arch", arch},
          {"options", absl::StrJoin(toolchain::Options(arch), " ")},
          {"cuda", cuda}};
}

absl::StatusOr<KernelSource> LowerKernel(const ir::LoopFn& loop, const schedule::Target& target) {
  KernelSource source;
  Clock clock(source.times);
  const auto choose = [&] { return schedule::ChooseSchedule(loop, target); };
  HACKC_ASSIGN_OR_RETURN(ir::Schedule schedule, Step("choose_schedule", loop, choose));
  clock.Lap("choose_schedule");
  HACKC_ASSIGN_OR_RETURN(passes::LoweredKernel lowered,
                         passes::LowerLoop(loop, schedule, schedule::LimitsOf(target)));
  clock.Laps(lowered.times);
  const auto emit = [&]() -> absl::StatusOr<ir::CudaFn> {
    return codegen::EmitCuda(lowered.kernel);
  };
  HACKC_ASSIGN_OR_RETURN(ir::CudaFn cuda, Step("emit_cuda", lowered.kernel, emit));
  clock.Lap("emit_cuda");
  source.kernel = program::MakeContract(loop, lowered.kernel, cuda.entry, target.arch);
  source.key_fields = KernelKeyFields(target.arch, cuda.text);
  source.ir = {{"loop", ir::Print(loop)},
               {"tile", ir::Print(lowered.tile)},
               {"kernel", ir::Print(lowered.kernel)},
               {"cuda", cuda.text}};
  source.cuda = std::move(cuda.text);
  return source;
}

struct EntryGraph {
  std::string name;
  ir::GraphModule graph;
};

// An entry for each range of a symbol up to one of `ends` and from there to its end: schedules
// follow the symbols' bounds.
void AddRanges(const std::string& name, ir::GraphModule graph, std::string_view of,
               std::vector<int64_t> ends, std::vector<EntryGraph>& entries) {
  ir::SymbolDecl* symbol = FindBy(graph.symbols, &ir::SymbolDecl::name, of);
  HACKC_CHECK(symbol != nullptr) << "a decoder's graph has a " << of;
  ends.push_back(symbol->max);
  for (const int64_t end : ends) {
    if (end < symbol->min || symbol->min > ends.back()) continue;
    symbol->max = std::min(end, ends.back());
    entries.push_back({name, graph});
    symbol->min = symbol->max + 1;
  }
}

// The entry points' graphs. A tile for thousands of tokens leaves most of the machine idle at a
// hundred, half of it at five hundred. With a cache there are more for single tokens: for one
// sequence, for as many as a product treats as a few rows, without and with matrix instructions,
// and for more than those; what serves eight sequences reads one sequence's weights at half the
// speed. They have no position to choose; all else, the cache's capacity above all, is as for
// prefill.
std::vector<EntryGraph> EntryGraphs(ir::GraphModule graph) {
  std::vector<EntryGraph> entries;
  AddRanges(kPrefill, graph, "seq", {kShortPrompt, kMediumPrompt}, entries);
  if (FindBy(graph.symbols, &ir::SymbolDecl::name, "past") == nullptr) return entries;
  ir::SymbolDecl* seq = FindBy(graph.symbols, &ir::SymbolDecl::name, "seq");
  seq->min = seq->max = 1;
  for (ir::GraphSegment& segment : graph.segments) {
    for (ir::GraphOp& op : segment.ops) {
      auto* take = std::get_if<ir::GraphTakePositions>(&op.op);
      if (take == nullptr) continue;
      std::erase_if(graph.sources, [&](const auto& s) { return s.name == take->positions; });
      take->positions.clear();
    }
  }
  AddRanges(kDecode, graph, "batch", {1, schedule::kFewRows, schedule::kFewMatrixRows}, entries);
  return entries;
}

absl::StatusOr<Plan> MakePlan(ir::GraphModule graph, const schedule::Target& target, Plan plan) {
  Clock clock(plan.times);
  std::vector<program::EntryModule> entries;
  for (EntryGraph& entry : EntryGraphs(std::move(graph))) {
    HACKC_ASSIGN_OR_RETURN(passes::LoweredModule lowered,
                           passes::LowerModule(std::move(entry.graph), {target.multiprocessors}));
    clock.Laps(lowered.times, entries.empty() ? "" : entry.name + ".");
    if (entries.empty()) plan.tensor_text = ir::Print(lowered.tensor);
    entries.push_back({entry.name, std::move(lowered.loops)});
  }
  program::ProgramPlan built = program::BuildProgram(entries, target.arch);
  plan.program = std::move(built.program);
  using program::Buffer;
  const auto* weight = FindBy(plan.program.buffers, &Buffer::kind, Buffer::Kind::kWeight);
  if (weight != nullptr) plan.program.dtype = weight->dtype;
  clock.Lap("build_program");
  for (size_t i = 0; i < built.loops.size(); ++i) {
    const ir::LoopFn& loop = built.loops[i];
    HACKC_ASSIGN_OR_RETURN(KernelSource source, LowerKernel(loop, target));
    source.kernel.name = plan.program.kernels[i].name;
    plan.program.kernels[i] = source.kernel;
    plan.kernels.push_back(std::move(source));
  }
  clock.Lap("lower_kernels");
  return plan;
}

// What none of its steps tells of in IR of its own is seen again from the graph.
absl::StatusOr<Plan> FinishPlan(ir::GraphModule graph, const schedule::Target& target, Plan plan) {
  const std::string text = plan.graph_text = ir::Print(graph);
  absl::StatusOr<Plan> done = Attempt(
      "program", "program", [&] { return text; },
      [&] { return MakePlan(std::move(graph), target, std::move(plan)); });
  if (!done.ok()) return WithReplayTarget(done.status(), target.arch);
  return done;
}

}  // namespace

absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) {
  return OnTarget(request.arch, [&](const schedule::Target& target) -> absl::StatusOr<KeyFields> {
    HACKC_ASSIGN_OR_RETURN(ir::GraphModule graph, BuildGraph(request));
    return KeyFields{{"kind", "program"},
                     {"format", kKeyFormat},
                     {"compiler", Cat(Fingerprint(), passes::PluginFingerprint())},
                     {"arch", target.arch},
                     {"options", absl::StrJoin(toolchain::Options(target.arch), " ")},
                     {"graph", ir::Print(graph)}};
  });
}

absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) {
  return OnTarget(request.arch, [&](const schedule::Target& target) -> absl::StatusOr<Plan> {
    Plan plan;
    Clock clock(plan.times);
    HACKC_ASSIGN_OR_RETURN(ir::GraphModule graph, BuildGraph(request));
    clock.Lap("front_end");
    return FinishPlan(std::move(graph), target, std::move(plan));
  });
}

absl::StatusOr<Plan> PlanGraph(const std::string& graph_text, const std::string& arch) {
  return OnTarget(arch, [&](const schedule::Target& target) -> absl::StatusOr<Plan> {
    HACKC_ASSIGN_OR_RETURN(ir::GraphModule graph, ir::ParseGraph(graph_text));
    return FinishPlan(std::move(graph), target, {});
  });
}

absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) {
  return toolchain::CompileCubin(source.cuda, source.kernel.entry, source.kernel.arch);
}

absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text, const std::string& arch) {
  return OnTarget(arch, [&](const schedule::Target& target) -> absl::StatusOr<Reference> {
    HACKC_ASSIGN_OR_RETURN(ir::LoopFn loop, ir::ParseLoop(loop_text));
    const ir::KernelFn plain = program::PlainKernel(loop);
    ir::CudaFn cuda = codegen::EmitCuda(plain);
    Reference reference;
    reference.source.kernel = program::MakeContract(loop, plain, cuda.entry, target.arch);
    reference.source.key_fields = KernelKeyFields(target.arch, cuda.text);
    reference.source.cuda = std::move(cuda.text);
    reference.buffers = program::UsesOf(loop);
    reference.rounding = program::RoundingOf(loop);
    return reference;
  });
}

absl::StatusOr<Rates> TargetRates(const std::string& arch) {
  HACKC_ASSIGN_OR_RETURN(schedule::Target target, schedule::FindTarget(arch));
  return Rates{target.memory_bytes_per_second, target.fma_operations_per_second,
               target.matrix_operations_per_second};
}

absl::Status LoadPassPlugin(const std::string& path) { return passes::LoadPassPlugin(path); }

absl::StatusOr<std::string> NvrtcVersion() { return toolchain::Version(); }

absl::StatusOr<std::vector<std::string>> SupportedArchs() {
  HACKC_ASSIGN_OR_RETURN(std::vector<int> capabilities, toolchain::Capabilities());
  std::vector<std::string> archs = schedule::TargetArchs();
  std::erase_if(archs, [&](const std::string& arch) {
    return absl::c_count(capabilities, toolchain::CapabilityOf(arch)) == 0;
  });
  return archs;
}

}  // namespace hackc

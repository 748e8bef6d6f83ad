// SPDX-License-Identifier: MIT
#include "tests/server/fake_compiler.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::server {
namespace {

using nlohmann::json;

void Crash() {
  signal(SIGSEGV, SIG_DFL);  // past a sanitizer's handler
  raise(SIGSEGV);
}

// True once, over all processes that share `marker`.
bool First(const std::string& marker) {
  const int file = open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

absl::Status Behave(const json& config, const std::string& who) {
  const std::string behaviour = config.value("behave", json::object()).value(who, "");
  const std::string marker = config.value("marker", "");
  if (behaviour == "slow") {
    std::this_thread::sleep_for(std::chrono::milliseconds(config.value("slow_ms", 50)));
  } else if (behaviour == "crash" || (behaviour == "crash_once" && First(marker))) {
    Crash();
  } else if (behaviour == "hang") {
    while (true) pause();
  } else if (behaviour == "garbage") {
    const std::string garbage(64, '\xff');
    if (write(3, garbage.data(), garbage.size()) < 0) return absl::InternalError("no channel");
  } else if (behaviour == "throw") {
    throw std::runtime_error("thrown by the fake compiler");
  } else if (behaviour == "error") {
    return absl::InternalError("the fake compiler cannot compile this");
  } else if (behaviour == "exhausted_once" && First(marker)) {
    return absl::ResourceExhaustedError("out of memory");
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ParseConfig(const CompileRequest& request) {
  json config = json::parse(request.config_json, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return absl::InvalidArgumentError("model.config: not an object");
  if (config.contains("invalid")) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.config.", config["invalid"].get<std::string>(), ": not supported"));
  }
  return config;
}

// y[seq, 64] = 2 * x[seq, 64], which tests/client/fake_cuda_library.cc runs.
program::Kernel TimedKernel(const std::string& name, const std::string& arch) {
  program::Kernel kernel;
  kernel.name = kernel.entry = name;
  kernel.computes = "twice its input";
  kernel.arch = arch;
  kernel.block = {128, 1, 1};
  for (auto& extent : kernel.grid) extent.value = 1;
  using Kind = program::Param::Kind;
  kernel.params = {{Kind::kBuffer, "x", 0, 8, 16},
                   {Kind::kBuffer, "y", 8, 8, 16, /*written=*/true},
                   {Kind::kSymbolI32, "seq", 16, 4, 0, false, "seq"}};
  kernel.valid = {{"seq", 1, 100}};
  const program::DimExpr rows{.op = program::DimExpr::Op::kSymbol, .symbol = "seq"};
  kernel.bytes_moved = {.op = program::DimExpr::Op::kMul, .args = {rows, {.value = 512}}};
  kernel.operations = {.op = program::DimExpr::Op::kMul, .args = {rows, {.value = 64}}};
  return kernel;
}

// "prefill": k0 once, then the others three times.
void AddRun(int kernels, program::Program& program) {
  const program::DimExpr rows{.op = program::DimExpr::Op::kSymbol, .symbol = "seq"};
  program.symbols = {{"seq", 1, 100}};
  for (const char* name : {"x", "y"}) {
    program::Buffer buffer;
    buffer.id = static_cast<uint32_t>(program.buffers.size());
    buffer.name = name;
    buffer.kind = program::Buffer::Kind(buffer.id);  // kInput, kOutput
    buffer.dtype = program::DType::kFloat32;
    buffer.shape = {rows, {.value = 64}};
    program.buffers.push_back(std::move(buffer));
  }
  program::EntryPoint entry{.name = "prefill", .inputs = {0}, .outputs = {1}};
  program::Step others{.repeat_count = 3};
  for (int i = 0; i < kernels; ++i) {
    program::Step step;
    step.launch = {static_cast<uint32_t>(i), {{0, {}}, {1, {}}}};
    (i == 0 ? entry.steps : others.steps).push_back(std::move(step));
  }
  if (kernels > 1) entry.steps.push_back(std::move(others));
  program.entry_points.push_back(std::move(entry));
}

}  // namespace

absl::StatusOr<KeyFields> FakeCompiler::ProgramKeyFields(const CompileRequest& request) {
  HACKC_ASSIGN_OR_RETURN(json config, ParseConfig(request));
  HACKC_RETURN_IF_ERROR(Behave(config, "front"));
  config.erase("behave");
  return KeyFields{{"graph", config.dump()},
                   {"arch", request.arch},
                   {"seq", absl::StrCat(request.seq.min, "..", request.seq.max)}};
}

absl::StatusOr<Plan> FakeCompiler::PlanProgram(const CompileRequest& request) {
  HACKC_ASSIGN_OR_RETURN(const json config, ParseConfig(request));
  ++plans;
  if (config.contains("plan_file")) std::ofstream(config["plan_file"], std::ios::app) << "plan\n";
  HACKC_RETURN_IF_ERROR(Behave(config, "plan"));
  Plan plan;
  plan.program.format_version = "1";
  plan.program.model = request.name;
  plan.program.arch = request.arch;
  plan.graph_text = "graph " + config.dump();
  plan.tensor_text = "tensor";
  plan.times.push_back({"lower", 1.5});
  const int count = config.value("kernels", 2);
  for (int i = 0; i < count; ++i) {
    KernelSource source;
    source.kernel = TimedKernel(absl::StrCat("k", i), request.arch);
    // The text is the config, from which CompileKernel learns how to behave.
    source.cuda = config.dump();
    source.key_fields = {{"cuda", absl::StrCat(i, config.value("salt", ""))},
                         {"arch", request.arch}};
    source.ir = {{"loop", absl::StrCat("loop of k", i)}, {"tile", "tile"}};
    plan.program.kernels.push_back(source.kernel);
    plan.kernels.push_back(std::move(source));
  }
  AddRun(count, plan.program);
  return plan;
}

absl::StatusOr<Reference> FakeCompiler::ReferenceKernel(const std::string& loop_text,
                                                        const std::string& arch) {
  if (loop_text.rfind("loop of ", 0) != 0) return absl::InvalidArgumentError("no Loop IR");
  Reference reference;
  reference.source.kernel = TimedKernel("reference", arch);
  reference.source.cuda = "{}";
  reference.source.key_fields = {{"cuda", "reference"}, {"arch", arch}};
  const program::DimExpr rows{.op = program::DimExpr::Op::kSymbol, .symbol = "seq"};
  const program::DimExpr columns{.value = 64};
  reference.buffers = {{program::DType::kFloat32, {rows, columns}, /*read=*/true, false, {}},
                       {program::DType::kFloat32, {rows, columns}, false, /*written=*/true, {}}};
  return reference;
}

absl::StatusOr<CompiledKernel> FakeCompiler::CompileKernel(const KernelSource& source) {
  const json config = json::parse(source.cuda);
  ++compiles;
  if (config.contains("count_file")) {
    std::ofstream(config["count_file"], std::ios::app) << source.kernel.name << "\n";
  }
  HACKC_RETURN_IF_ERROR(Behave(config, source.kernel.name));
  CompiledKernel compiled;
  const std::string on_gpu =
      config.value("gpu", json::object()).value(source.kernel.name, "double");
  compiled.bytes =
      absl::StrCat("cubin of ", source.kernel.name, config.value("salt", ""), " gpu:", on_gpu, ";");
  compiled.bytes.resize(config.value("cubin_bytes", 1000), 'x');
  compiled.registers = 42;
  compiled.static_shared_bytes = 256;
  compiled.milliseconds = 3;
  return compiled;
}

v1::CompileRequest FakeRequest(const std::string& config_json) {
  v1::CompileRequest request;
  request.mutable_model()->set_name("fake");
  const auto status = google::protobuf::util::JsonStringToMessage(
      config_json, request.mutable_model()->mutable_config());
  if (!status.ok()) throw std::runtime_error(status.ToString());
  request.set_with_cubins(true);
  return request;
}

}  // namespace hackc::server

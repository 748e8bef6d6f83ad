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
    source.kernel.name = absl::StrCat("k", i);
    source.kernel.computes = "nothing";
    source.kernel.entry = source.kernel.name;
    source.kernel.arch = request.arch;
    source.kernel.block = {128, 1, 1};
    // The text is the config, from which CompileKernel learns how to behave.
    source.cuda = config.dump();
    source.key_fields = {{"cuda", absl::StrCat(i, config.value("salt", ""))},
                         {"arch", request.arch}};
    source.ir = {{"loop", absl::StrCat("loop of k", i)}, {"tile", "tile"}};
    plan.program.kernels.push_back(source.kernel);
    plan.kernels.push_back(std::move(source));
  }
  return plan;
}

absl::StatusOr<CompiledKernel> FakeCompiler::CompileKernel(const KernelSource& source) {
  const json config = json::parse(source.cuda);
  ++compiles;
  if (config.contains("count_file")) {
    std::ofstream(config["count_file"], std::ios::app) << source.kernel.name << "\n";
  }
  HACKC_RETURN_IF_ERROR(Behave(config, source.kernel.name));
  CompiledKernel compiled;
  compiled.cubin = absl::StrCat("cubin of ", source.kernel.name, config.value("salt", ""));
  compiled.cubin.resize(config.value("cubin_bytes", 1000), 'x');
  compiled.registers = 42;
  compiled.static_shared_bytes = 256;
  compiled.nvrtc_ms = 3;
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

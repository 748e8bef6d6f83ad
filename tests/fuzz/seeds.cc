// SPDX-License-Identifier: MIT
// Writes what fuzzing starts from, one folder for each target: the IR of golden cases and of a tiny
// model at every level, configs of golden and sample models, requests for them, and programs.
//
//   fuzz_seeds SOURCE_DIR OUT_DIR
#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "compiler/compile.h"
#include "hackc/v1/compiler.pb.h"
#include "nlohmann/json.hpp"
#include "server/convert.h"

namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Writer {
  fs::path out;
  void operator()(const char* target, const std::string& name, const std::string& bytes) const {
    fs::create_directories(out / target);
    std::ofstream(out / target / name, std::ios::binary) << bytes;
  }
};

// Every form in which a config is asked for.
void WriteConfig(const Writer& write, const std::string& name, const std::string& config) {
  write("config", name + ".json", config);
  for (char options : {'\x05', '\x2e', '\x51'}) {  // with a cache; odd ranges; one layer
    write("config", name + "." + std::to_string(options), std::string("!") + options + config);
  }
  hackc::v1::CompileRequest request;
  request.mutable_model()->set_name(name);
  request.mutable_model()->mutable_seq()->set_min(1);
  request.mutable_model()->mutable_seq()->set_max(16);
  request.mutable_model()->mutable_past()->set_max(8);
  request.mutable_target()->set_arch("sm_90a");
  const auto status = google::protobuf::util::JsonStringToMessage(
      config, request.mutable_model()->mutable_config());
  if (!status.ok()) std::fprintf(stderr, "%s: not a struct\n", name.c_str());
  write("request", name, std::string(1, '\0') + request.SerializeAsString());
  hackc::v1::ExplainKeyRequest explain;
  *explain.mutable_model() = request.model();
  write("request", name + ".key", std::string(1, '\2') + explain.SerializeAsString());
}

bool WriteProgram(const Writer& write, const std::string& name, const std::string& config,
                  hackc::program::DType dtype, int64_t past) {
  hackc::CompileRequest request;
  request.config_json = config;
  request.seq = {1, 16};
  request.past = {0, past};
  request.dtype = dtype;
  const auto plan = hackc::PlanProgram(request);
  if (!plan.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), plan.status().ToString().c_str());
    return false;
  }
  write("program", name, hackc::server::ToProto(plan->program).SerializeAsString());
  write("ir_text", name + ".graph", plan->graph_text);
  write("ir_text", name + ".tensor", plan->tensor_text);
  for (size_t i = 0; i < plan->kernels.size(); ++i) {
    const hackc::KernelSource& source = plan->kernels[i];
    for (const auto& [level, text] : source.ir) {
      if (level == "cuda" || text.size() > 6000) continue;
      write("ir_text", name + "." + std::to_string(i) + "." + level, text);
    }
    if (i < 3) {
      write("request", name + "." + std::to_string(i) + ".source",
            std::string(1, '\1') + hackc::server::ToProto(source).SerializeAsString());
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "fuzz_seeds SOURCE_DIR OUT_DIR\n");
    return 2;
  }
  const fs::path source = argv[1];
  const Writer write{argv[2]};
  for (const auto& entry : fs::recursive_directory_iterator(source / "tests/golden")) {
    if (entry.path().extension() != ".hir") continue;
    std::string name = fs::relative(entry.path(), source / "tests/golden").string();
    for (char& c : name) c = c == '/' ? '.' : c;
    write("ir_text", name, Read(entry.path()));
  }
  for (const auto& entry : fs::directory_iterator(source / "models")) {
    const auto model = nlohmann::json::parse(Read(entry.path()), nullptr, false);
    if (model.contains("config")) {
      WriteConfig(write, entry.path().stem().string(), model["config"].dump(1));
    }
  }
  bool good = true;
  for (const auto& entry : fs::directory_iterator(source / "tests/data/golden")) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    const std::string name = entry.path().filename().string();
    const std::string config = Read(entry.path() / "config.json");
    WriteConfig(write, name, config);
    if (name == "llama" || name == "qwen2-tied") {
      const bool first = name == "llama";
      good &=
          WriteProgram(write, name, config,
                       first ? hackc::program::DType::kBFloat16 : hackc::program::DType::kFloat32,
                       first ? 8 : 0);
    }
  }
  write("request", "digest", std::string(1, '\3') + "sha256:" + std::string(64, 'a'));
  return good ? 0 : 1;
}

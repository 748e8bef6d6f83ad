// SPDX-License-Identifier: MIT
#include "client/cli/request_options.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/local_compiler.h"
#include "client/compile_client.h"
#include "client/model_file.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

std::string DefaultServer() {
  const char* named = std::getenv("HACKC_SERVER");
  return named != nullptr && *named != '\0' ? named : "127.0.0.1:7070";
}

}  // namespace

CLI::Validator WholeNumber(uint64_t low, uint64_t high) {
  auto check = [low, high](const std::string& text) {
    uint64_t value = 0;
    const bool fits = absl::SimpleAtoi(text, &value) && low <= value && value <= high;
    return fits ? std::string()
                : absl::StrCat("expected a whole number of ", low, " to ", high, ", got ", text);
  };
  return CLI::Validator(check, "");
}

void ConnectionOptions::AddTo(CLI::App& app, bool with_local) {
  CLI::Option* address = app.add_option(
      "--server", server, "The server's address (else $HACKC_SERVER, else 127.0.0.1:7070)");
  app.add_option("--connect-timeout", timeout_seconds,
                 "Seconds to wait for the server's first answer")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  if (!with_local) return;
  CLI::Option* here =
      app.add_flag("--local", local, "Compile in this process; no server is needed");
  here->excludes(address);
  app.add_option("--cache-dir", cache_dir, "Folder of the cache (with --local)")->needs(here);
}

absl::StatusOr<std::unique_ptr<CompilerApi>> ConnectionOptions::Open() const {
  if (local) return OpenLocalCompiler(cache_dir);
  ConnectOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
  return CompileClient::Connect(server.empty() ? DefaultServer() : server, options);
}

void RequestOptions::AddTo(CLI::App& app) {
  app.add_option("MODEL", model_path,
                 "A Hugging Face config.json, a folder with one, or a ModelDescription in JSON")
      ->required();
  app.add_option("--arch", arch, "Target such as sm_90a (else the server's default)");
  app.add_option("--dtype", dtype, "Storage of weights and activations")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  app.add_option("--batch", batch, "Sequences in one call: N or A..B");
  app.add_option("--seq", seq, "New tokens of a sequence in one call: N or A..B");
  app.add_option("--past", past, "Tokens already in the key/value cache: N or A..B");
  app.add_option(
         "--page-size", page_size,
         "Positions in a page of the key/value cache; 0: no pages, each sequence's lie in a row")
      ->check(WholeNumber(0, INT64_MAX));
  app.add_option("--logits", logits, "Of all positions, or of one chosen position of each sequence")
      ->check(CLI::IsMember({"all", "last"}));
  app.add_option("--layers", layers, "Compile only the first N layers; 0: all")
      ->check(WholeNumber(0, INT32_MAX));
}

absl::StatusOr<v1::Range> ParseRange(const std::string& field, const std::string& text,
                                     int64_t minimum) {
  v1::Range range;
  std::string first = text;
  std::string last = text;
  if (size_t dots = text.find(".."); dots != text.npos) {
    first = text.substr(0, dots);
    last = text.substr(dots + 2);
  }
  int64_t a = 0;
  int64_t b = 0;
  if (!absl::SimpleAtoi(first, &a) || !absl::SimpleAtoi(last, &b) || a < minimum || b < a) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected N or A..B with ", minimum, " <= A <= B, got '", text, "'"));
  }
  range.set_min(a);
  range.set_max(b);
  return range;
}

absl::StatusOr<v1::ModelDescription> RequestOptions::Model() const {
  HACKC_ASSIGN_OR_RETURN(v1::ModelDescription model, ReadModelFile(model_path));
  if (dtype == "float32") model.set_dtype(v1::DTYPE_FLOAT32);
  if (dtype == "bfloat16") model.set_dtype(v1::DTYPE_BFLOAT16);
  if (dtype == "float16") model.set_dtype(v1::DTYPE_FLOAT16);
  if (!batch.empty()) {
    HACKC_ASSIGN_OR_RETURN(*model.mutable_batch(), ParseRange("batch", batch, 1));
  }
  if (!seq.empty()) {
    HACKC_ASSIGN_OR_RETURN(*model.mutable_seq(), ParseRange("seq", seq, 1));
  }
  if (!past.empty()) {
    HACKC_ASSIGN_OR_RETURN(*model.mutable_past(), ParseRange("past", past, 0));
  }
  if (page_size > 0) model.set_page_size(page_size);
  if (logits == "last") model.set_logits(v1::ModelDescription::LOGITS_LAST);
  if (layers > 0) model.set_layers(static_cast<int32_t>(layers));
  return model;
}

v1::Target RequestOptions::Target() const {
  v1::Target target;
  target.set_arch(arch);
  return target;
}

}  // namespace hackc::client

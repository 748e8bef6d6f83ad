// SPDX-License-Identifier: MIT
#include "client/cli/run.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/compile_program.h"
#include "client/cli/progress.h"
#include "client/cli/run_shapes.h"
#include "client/model_file.h"
#include "client/runtime/checkpoint.h"
#include "client/runtime/generator.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

void RunCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("run", "Continues a prompt with a model on this GPU");
  command->add_option("MODEL_DIR", directory_, "A Hugging Face folder: config.json and safetensors")
      ->required();
  command
      ->add_option(
          "--ids", prompts_,
          "A prompt's token ids, such as 1,2,3; given again: one more sequence of the batch")
      ->required()
      ->allow_extra_args(false);
  command
      ->add_option("--page-size", page_size_,
                   "Positions in a page of the key/value cache; 0: no pages")
      ->check(WholeNumber(0, INT64_MAX));
  command->add_option("--tokens", tokens_, "Tokens to generate")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--temperature", temperature_, "0 takes the likeliest token each time")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--seed", seed_, "Seed of the draws with --temperature")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--dtype", dtype_, "Storage of weights and activations (else the config's)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  command->add_option("--device", device_, "CUDA device")
      ->check(WholeNumber(0, 1023))
      ->capture_default_str();
  CLI::Option* program = command->add_option(
      "--program", program_, "A folder written by submit --out; nothing is compiled");
  connection_.AddTo(*command, /*with_local=*/true);
  for (const char* other :
       {"--dtype", "--page-size", "--server", "--connect-timeout", "--local", "--cache-dir"}) {
    program->excludes(command->get_option(other));
  }
  command->callback(std::move(chosen));
}

absl::StatusOr<ProgramFiles> RunCommand::Compile(const CudaDriver& driver, std::ostream& err,
                                                 const CliEnvironment& environment) const {
  if (!program_.empty()) return ReadProgramFolder(program_);
  RequestOptions options;
  options.model_path = directory_;
  options.dtype = dtype_;
  options.logits = "last";
  options.page_size = page_size_;
  int64_t prompt = 0;
  for (const auto& ids : ids_) prompt = std::max(prompt, static_cast<int64_t>(ids.size()));
  HACKC_ASSIGN_OR_RETURN(options.arch, ArchOf(driver, device_));
  v1::CompileRequest request;
  HACKC_ASSIGN_OR_RETURN(*request.mutable_model(), options.Model());
  HACKC_RETURN_IF_ERROR(
      ChooseRunShapes(static_cast<int64_t>(ids_.size()), prompt, tokens_, request.mutable_model()));
  *request.mutable_target() = options.Target();
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());
  ProgressPrinter progress(err, environment.err_is_terminal);
  return CompileProgram(*compiler, std::move(request),
                        [&](const v1::CompileEvent& event) { progress.Show(event); });
}

absl::Status RunCommand::Generate(Runtime& runtime, std::ostream& out) const {
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator,
                         Generator::Create(runtime, static_cast<int64_t>(ids_.size())));
  std::mt19937_64 random(seed_);
  auto start = Clock::now();
  HACKC_ASSIGN_OR_RETURN(Generator::Logits logits, generator->Feed(ids_));
  const double prefill = MillisecondsSince(start);
  Generator::Tokens tokens(ids_.size()), next(ids_.size());
  start = Clock::now();
  while (true) {
    for (size_t b = 0; b < ids_.size(); ++b) {
      HACKC_ASSIGN_OR_RETURN(int64_t token, PickToken(logits[b], temperature_, &random));
      tokens[b].push_back(token);
      next[b] = {token};
    }
    if (static_cast<int64_t>(tokens[0].size()) == tokens_) break;
    HACKC_ASSIGN_OR_RETURN(logits, generator->Feed(next));
  }
  const double decode = MillisecondsSince(start);
  const size_t steps = tokens[0].size() - 1, generated = steps * ids_.size();
  size_t fed = 0;
  for (size_t b = 0; b < ids_.size(); ++b) {
    out << absl::StrJoin(tokens[b], ",") << "\n";
    fed += ids_[b].size();
  }
  out << absl::StreamFormat("prefill %d tokens in %.2f ms", fed, prefill);
  if (steps > 0) {
    out << absl::StreamFormat("; decode %d tokens in %.2f ms, %.2f ms each, %.1f tokens/s",
                              generated, decode, decode / steps, 1000 * generated / decode);
  }
  out << "\n";
  return absl::OkStatus();
}

absl::Status RunCommand::Run(std::ostream& out, std::ostream& err,
                             const CliEnvironment& environment) {
  for (const std::string& prompt : prompts_) {
    std::vector<int64_t>& ids = ids_.emplace_back();
    for (absl::string_view id : absl::StrSplit(prompt, ',')) {
      if (!absl::SimpleAtoi(id, &ids.emplace_back()) || ids.back() < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--ids: expected token ids such as 1,2,3, got '", prompt, "'"));
      }
    }
  }
  // What is missing is said before anything is compiled.
  HACKC_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  HACKC_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(directory_));
  HACKC_ASSIGN_OR_RETURN(ProgramFiles files, Compile(*driver, err, environment));
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                         Runtime::Load(*driver, std::move(files), device_));
  auto start = Clock::now();
  int64_t total = 0;
  HACKC_ASSIGN_OR_RETURN(
      std::vector<std::string> unused, checkpoint.BindTo(*runtime, [&](int64_t done, int64_t all) {
        total = all;
        if (environment.err_is_terminal) {
          err << absl::StreamFormat("\rweights %3d%%", 100 * done / all) << std::flush;
        }
        return true;
      }));
  if (environment.err_is_terminal) err << "\r";
  HACKC_RETURN_IF_ERROR(runtime->Prepare(nullptr));
  const double seconds = MillisecondsSince(start) / 1000;
  err << absl::StreamFormat("weights: %.2f GB in %.1f s, %.2f GB/s\n", total / 1e9, seconds,
                            total / 1e9 / seconds);
  if (!unused.empty()) {
    err << unused.size() << " tensors of the folder are not used: " << absl::StrJoin(unused, ", ")
        << "\n";
  }
  return Generate(*runtime, out);
}

}  // namespace hackc::client

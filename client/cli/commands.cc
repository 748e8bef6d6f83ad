// SPDX-License-Identifier: MIT
#include "client/cli/commands.h"

#include <google/protobuf/util/json_util.h>

#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "client/cli/timing_table.h"
#include "client/runtime/digest.h"
#include "client/runtime/files.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hackc::client {
namespace {

// "sha256:abc" -> "sha256-abc.cubin": a cubin is an ELF file, the other blobs are programs.
std::string BlobFileName(const v1::Blob& blob) {
  std::string name = blob.digest();
  name[name.find(':')] = '-';
  return absl::StrCat(name, absl::StartsWith(blob.data(),
                                             "\x7f"
                                             "ELF")
                                ? ".cubin"
                                : ".pb");
}

}  // namespace

void FetchCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("fetch", "Takes what is already compiled, by digest");
  command->add_option("DIGEST", digests_, "sha256:... of cubins and programs")->required();
  command->add_option("--out", out_dir_, "Folder for the files")->capture_default_str();
  connection_.AddTo(*command, /*with_local=*/true);
  command->callback(std::move(chosen));
}

absl::Status FetchCommand::Run(std::ostream& out) {
  for (const std::string& digest : digests_) {
    if (!IsDigest(digest)) {
      return absl::InvalidArgumentError(
          absl::StrCat("digest: expected sha256: and 64 hexadecimal digits, got '", digest, "'"));
    }
  }
  HACKC_RETURN_IF_ERROR(MakeFolder(out_dir_));
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());
  HACKC_ASSIGN_OR_RETURN(std::vector<v1::Blob> blobs, compiler->Fetch(digests_));
  for (const v1::Blob& blob : blobs) {
    std::filesystem::path file = std::filesystem::path(out_dir_) / BlobFileName(blob);
    HACKC_RETURN_IF_ERROR(WriteFile(file, blob.data()));
    out << file.string() << "  " << blob.data().size() << " bytes\n";
  }
  return absl::OkStatus();
}

void ExplainCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("explain", "Prints a kernel or the whole model in an IR");
  request_.AddTo(*command);
  command->add_option("--kernel", kernel_, "Name of the kernel (else the whole model)");
  command->add_option("--level", level_, "IR to print")
      ->check(CLI::IsMember({"graph", "tensor", "loop", "tile", "kernel", "cuda", "all"}))
      ->capture_default_str();
  connection_.AddTo(*command, /*with_local=*/true);
  command->callback(std::move(chosen));
}

absl::Status ExplainCommand::Run(std::ostream& out) {
  v1::ExplainRequest request;
  HACKC_ASSIGN_OR_RETURN(*request.mutable_model(), request_.Model());
  *request.mutable_target() = request_.Target();
  request.set_kernel(kernel_);
  request.set_level(level_);
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());
  HACKC_ASSIGN_OR_RETURN(v1::ExplainResponse response, compiler->Explain(request));
  for (const auto& text : response.texts()) {
    // One text alone stays free of a heading, so that it can be piped into hackc-opt or nvcc.
    if (response.texts_size() > 1) {
      out << "// ---- " << (text.kernel().empty() ? "model" : text.kernel()) << " / "
          << text.level() << "\n";
    }
    out << text.text();
    if (!absl::EndsWith(text.text(), "\n")) out << "\n";
  }
  return absl::OkStatus();
}

void ExplainKeyCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command =
      app.add_subcommand("explain-key", "Prints what a request's cache key is made of");
  request_.AddTo(*command);
  connection_.AddTo(*command, /*with_local=*/true);
  command->callback(std::move(chosen));
}

absl::Status ExplainKeyCommand::Run(std::ostream& out) {
  v1::ExplainKeyRequest request;
  HACKC_ASSIGN_OR_RETURN(*request.mutable_model(), request_.Model());
  *request.mutable_target() = request_.Target();
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());
  HACKC_ASSIGN_OR_RETURN(v1::ExplainKeyResponse response, compiler->ExplainKey(request));
  out << "key " << response.key() << "\n"
      << (response.present() ? "in the cache\n" : "not in the cache\n") << response.fields();
  if (!absl::EndsWith(response.fields(), "\n")) out << "\n";
  if (!response.difference().empty()) {
    out << "against the nearest stored key:\n" << response.difference() << "\n";
  }
  return absl::OkStatus();
}

void StatusCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("status", "Prints what the server is and does");
  connection_.AddTo(*command, /*with_local=*/false);
  command->add_flag("--json", json_, "Print one JSON object");
  command->callback(std::move(chosen));
}

absl::Status StatusCommand::Run(std::ostream& out) {
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());
  HACKC_ASSIGN_OR_RETURN(v1::StatusResponse status, compiler->Status());
  if (json_) {
    google::protobuf::util::JsonPrintOptions options;
    options.add_whitespace = true;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    std::string text;
    if (!google::protobuf::util::MessageToJsonString(status, &text, options).ok()) {
      return absl::InternalError("the server's status has no JSON form");
    }
    out << text;
    return absl::OkStatus();
  }
  auto line = [&out](const char* name, const std::string& value) {
    out << absl::StreamFormat("%-17s%s\n", name, value);
  };
  line("version", status.version());
  line("state", status.stopping() ? "stopping" : "serving");
  line("default arch", status.arch());
  line("archs", absl::StrJoin(status.archs(), " "));
  line("gpu", status.gpu().empty() ? "none" : status.gpu());
  line("nvrtc", status.nvrtc_version());
  line("workers", absl::StrCat(status.workers()));
  line("jobs", absl::StrCat(status.running(), " running, ", status.queued(), " queued"));
  line("kernels compiled", absl::StrCat(status.compiled_kernels()));
  line("cache", absl::StrFormat("%d hits, %d misses, %.1f MB", status.cache_hits(),
                                status.cache_misses(), status.cache_bytes() / 1e6));
  line("requests",
       absl::StrCat(status.requests(), ", ", status.program_hits(), " stored, ",
                    status.program_joins(), " joined, ", status.open_answers(), " open"));
  line("refused", absl::StrCat(status.refused_requests(), " requests, ", status.refused_kernels(),
                               " kernels"));
  line("lost",
       absl::StrCat(status.workers_lost(), " workers, ", status.cancelled_builds(), " builds, ",
                    status.store_failures(), " writes, ", status.cache_corruptions(), " damaged, ",
                    status.cache_evictions(), " evicted"));
  line("memory", absl::StrFormat("%.1f MB", status.resident_bytes() / 1e6));
  line("uptime", absl::StrFormat("%.0f s", status.uptime_seconds()));
  return absl::OkStatus();
}

void ReportCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("report", "Shows the times in a report");
  command->add_option("PATH", path_, "report.json, or the folder of submit --out")->required();
  command->callback(std::move(chosen));
}

absl::Status ReportCommand::Run(std::ostream& out) {
  std::filesystem::path path = path_;
  if (std::filesystem::is_directory(path)) path /= "report.json";
  HACKC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 64 << 20));
  const absl::StatusOr<nlohmann::json> parsed = ParseJson(text);
  auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", why));
  };
  if (!parsed.ok()) return refuse(parsed.status().message());
  const nlohmann::json& report = *parsed;
  if (!report.is_object()) {
    return refuse(absl::StrCat("expected a JSON object, got ", report.type_name()));
  }
  if (!report.contains("timing")) {
    return absl::NotFoundError(absl::StrCat(
        path.string(), ": holds no times; they come from a server that was started with --gpu"));
  }
  if (!report["timing"].is_object()) {
    return refuse(
        absl::StrCat("timing: expected a JSON object, got ", report["timing"].type_name()));
  }
  out << TimingTable(report["timing"].dump());
  return absl::OkStatus();
}

}  // namespace hackc::client

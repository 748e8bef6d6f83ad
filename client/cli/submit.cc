// SPDX-License-Identifier: MIT
#include "client/cli/submit.h"

#include "CLI/CLI.hpp"
#include "client/cli/output_folder.h"
#include "client/cli/progress.h"
#include "client/cli/render.h"
#include "client/runtime/files.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {

void SubmitCommand::AddTo(CLI::App& app, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand("submit", "Compiles a model, or takes it from the cache");
  request_.AddTo(*command);
  connection_.AddTo(*command, /*with_local=*/true);
  command->add_option("--out", out_dir_,
                      "Folder for program.pb, program.json, cubins, every IR and report.json");
  command->add_flag("--json", json_, "Print one JSON object in place of the table");
  command->callback(std::move(chosen));
}

absl::Status SubmitCommand::Run(std::ostream& out, std::ostream& err,
                                const CliEnvironment& environment) {
  v1::CompileRequest request;
  HACKC_ASSIGN_OR_RETURN(*request.mutable_model(), request_.Model());
  *request.mutable_target() = request_.Target();
  request.set_with_ir(!out_dir_.empty());
  request.set_with_cubins(!out_dir_.empty());
  // Said before the minute that a compile may take.
  if (!out_dir_.empty()) HACKC_RETURN_IF_ERROR(MakeFolder(out_dir_));
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, connection_.Open());

  CompileResult result;
  result.model = request.model().name();
  {
    ProgressPrinter progress(err, environment.err_is_terminal);
    HACKC_RETURN_IF_ERROR(compiler->Compile(request, [&](const v1::CompileEvent& event) {
      progress.Show(event);
      result.Add(event);
    }));
  }
  result.Finish();
  if (!out_dir_.empty()) HACKC_RETURN_IF_ERROR(WriteOutputFolder(result, out_dir_));
  out << (json_ ? ResultJson(result) : ResultTable(result));
  return absl::OkStatus();
}

}  // namespace hackc::client

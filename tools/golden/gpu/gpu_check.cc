// SPDX-License-Identifier: MIT
#include "tools/golden/gpu/gpu_check.h"

#include <memory>
#include <utility>

#include "client/cli/compile_program.h"
#include "client/cli/local_compiler.h"
#include "client/cli/request_options.h"
#include "client/runtime/checkpoint.h"
#include "client/runtime/generator.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"
#include "server/local.h"

namespace hackc::golden {
namespace {

using interp::TensorData;

absl::StatusOr<std::unique_ptr<client::Runtime>> Load(const client::CudaDriver& driver,
                                                      const std::filesystem::path& folder,
                                                      const Model& model, CheckedDType dtype) {
  client::RequestOptions options;
  options.model_path = folder.string();
  options.dtype = kCheckedDTypeNames[static_cast<size_t>(dtype)];
  options.seq = Cat("1..", LongestCall(model));
  options.past = Cat("0..", LongestPast(model));
  HACKC_ASSIGN_OR_RETURN(options.arch, client::ArchOf(driver, 0));
  v1::CompileRequest request;
  HACKC_ASSIGN_OR_RETURN(*request.mutable_model(), options.Model());
  *request.mutable_target() = options.Target();
  HACKC_ASSIGN_OR_RETURN(const std::unique_ptr<client::CompilerApi> compiler,
                         client::OpenLocalCompiler(server::DefaultCacheDir()));
  HACKC_ASSIGN_OR_RETURN(client::ProgramFiles files,
                         client::CompileProgram(*compiler, std::move(request), nullptr));
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<client::Runtime> runtime,
                         client::Runtime::Load(driver, std::move(files), 0));
  HACKC_ASSIGN_OR_RETURN(const client::Checkpoint checkpoint, client::Checkpoint::Open(folder));
  HACKC_RETURN_IF_ERROR(checkpoint.BindTo(*runtime).status());
  HACKC_RETURN_IF_ERROR(runtime->Prepare(nullptr));
  return runtime;
}

class GpuRun {
 public:
  GpuRun(client::Runtime& runtime, bool whole_prompt)
      : runtime_(runtime), whole_prompt_(whole_prompt) {}

  // Logits [tokens, vocabulary] of one sequence: those of a prompt's parts, each a call of its own,
  // unless their rope is another.
  absl::StatusOr<TensorData> Run(const Call& call) {
    TensorData logits;
    const std::vector<int64_t> ids(call.ids.values.begin(), call.ids.values.end());
    const size_t first = call.past == 0 && !whole_prompt_ ? 1 : ids.size();
    for (size_t length = first; length <= ids.size(); ++length) {
      if (call.past == 0) {
        generator_.reset();
        HACKC_ASSIGN_OR_RETURN(generator_, client::Generator::Create(runtime_));
      }
      HACKC_ASSIGN_OR_RETURN(
          const client::Generator::Logits rows,
          generator_->Feed({std::vector<int64_t>(ids.begin(), ids.begin() + length)}));
      logits.values.insert(logits.values.end(), rows[0].begin(), rows[0].end());
    }
    return logits;
  }

 private:
  client::Runtime& runtime_;
  const bool whole_prompt_;
  std::unique_ptr<client::Generator> generator_;
};

}  // namespace

Outcome CheckOnGpu(const client::CudaDriver& driver, const std::filesystem::path& folder,
                   const Model& model, CheckedDType dtype) {
  const absl::StatusOr<double> bound = TruthBound(model, dtype);
  if (!bound.ok()) return {.problem = std::string(bound.status().message())};
  const auto runtime = Load(driver, folder, model, dtype);
  if (!runtime.ok()) return {.problem = std::string(runtime.status().message())};
  GpuRun run(**runtime, TakesOneSequence(model));
  return CheckAgainstTruth(
      model, [&](const Call& call) { return run.Run(call); }, *bound);
}

}  // namespace hackc::golden

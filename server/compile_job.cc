// SPDX-License-Identifier: MIT
#include "server/compile_job.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "server/convert.h"
#include "server/milliseconds.h"

namespace hackc::server {
namespace {

using v1::worker::KernelSource;
using v1::worker::PlanResult;

// Results come from the pool's threads in any order; the job takes them one by one.
class Results {
 public:
  struct Item {
    cache::Digest key;
    absl::StatusOr<BuiltKernel> built;
  };
  void Put(Item item) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    // Under the lock: the taker may destroy this object as soon as it has the last item.
    changed_.notify_one();
  }
  Item Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty(); });
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
};

void AddTime(google::protobuf::RepeatedPtrField<v1::StageTime>* times, std::string stage,
             double milliseconds) {
  v1::StageTime* time = times->Add();
  time->set_stage(std::move(stage));
  time->set_milliseconds(milliseconds);
}

std::shared_ptr<const v1::stored::Texts> Share(const v1::stored::Texts& texts) {
  return std::make_shared<const v1::stored::Texts>(texts);
}

void AppendProgram(const StoredProgram& program, bool hit, EventLog& log) {
  LogEntry ready;
  v1::ProgramReady* message = ready.event.mutable_program();
  *message->mutable_program() = program.program;
  message->set_digest(program.digest);
  message->set_bytes(program.bytes);
  message->set_hit(hit);
  log.Append(std::move(ready));
}

}  // namespace

void AppendProgress(EventLog& log, std::string stage, uint32_t done, uint32_t total,
                    std::string detail) {
  LogEntry entry;
  v1::Progress* progress = entry.event.mutable_progress();
  progress->set_stage(std::move(stage));
  progress->set_done(done);
  progress->set_total(total);
  progress->set_detail(std::move(detail));
  log.Append(std::move(entry));
}

void AppendReport(const StoredProgram& program, v1::Report report, EventLog& log) {
  LogEntry last{.ir = Share(program.ir.model())};
  *last.event.mutable_report() = std::move(report);
  log.Append(std::move(last));
}

void CompileJob::AppendReport(std::string timing_json) {
  report_.set_timing_json(std::move(timing_json));
  server::AppendReport(program_, std::move(report_), *log_);
}

v1::Report AppendStored(const StoredProgram& program, EventLog& log) {
  for (int i = 0; i < program.program.kernels_size(); ++i) {
    LogEntry entry{.cubin = program.cubins[i]};
    *entry.event.mutable_kernel()->mutable_kernel() = program.program.kernels(i);
    entry.event.mutable_kernel()->set_hit(true);
    if (i < program.ir.kernels_size()) entry.ir = Share(program.ir.kernels(i));
    log.Append(std::move(entry));
  }
  v1::Report report;
  report.set_hits(program.program.kernels_size());
  AppendProgram(program, /*hit=*/true, log);
  return report;
}

absl::Status CompileJob::Run(const JobContext& context) {
  if (cancelled()) return absl::CancelledError("nobody waits for this build any more");
  // The same build may have ended between this request's look into the store and its turn.
  if (std::optional<StoredProgram> stored = context.artifacts.FindProgram(key_, /*with_ir=*/true)) {
    program_ = *std::move(stored);
    HACKC_RETURN_IF_ERROR(Check(context));
    v1::Report report = AppendStored(program_, *log_);
    *report.mutable_times() = std::move(*report_.mutable_times());
    report_ = std::move(report);
    context.metrics.kernel_hits += report_.hits();
    ++context.metrics.program_hits;
    return absl::OkStatus();
  }
  AppendProgress(*log_, "lower", 0, 1);
  v1::worker::Request request;
  *request.mutable_plan() = call_;
  HACKC_ASSIGN_OR_RETURN(v1::worker::Reply reply,
                         context.pool.Run({.request = std::move(request),
                                           .cancelled = [this] { return cancelled(); }}));
  PlanResult plan = std::move(*reply.mutable_plan());
  if (plan.kernels_size() != plan.program().kernels_size()) {
    return absl::InternalError(absl::StrCat("the plan has ", plan.kernels_size(),
                                            " kernel sources, its program ",
                                            plan.program().kernels_size(), " kernels"));
  }
  AppendProgress(*log_, "lower", 1, 1);

  StoredProgram& program = program_;
  v1::Report& report = report_;
  *report.mutable_times() = plan.times();
  (*program.ir.mutable_model()->mutable_texts())["graph"] = std::move(*plan.mutable_graph_text());
  (*program.ir.mutable_model()->mutable_texts())["tensor"] = std::move(*plan.mutable_tensor_text());
  HACKC_RETURN_IF_ERROR(BuildKernels(context, plan, program, report));

  program.program = std::move(*plan.mutable_program());
  program.bytes = SerializeDeterministic(program.program);
  program.digest = cache::Sha256(program.bytes).ToString();
  HACKC_RETURN_IF_ERROR(Check(context));
  for (LogEntry& kernel : held_) log_->Append(std::move(kernel));
  held_.clear();

  const auto store_start = std::chrono::steady_clock::now();
  AppendProgress(*log_, "store", 0, 1);
  context.artifacts.PutProgram(key_, name_, program);
  AppendProgress(*log_, "store", 1, 1);
  AddTime(report.mutable_times(), "store", MillisecondsSince(store_start));
  AppendProgram(program, /*hit=*/false, *log_);
  return absl::OkStatus();
}

bool CompileJob::IsChecked(const JobContext& context) const {
  return context.timer && call_.arch() == context.timer->gpu.arch;
}

absl::Status CompileJob::Check(const JobContext& context) {
  if (!IsChecked(context)) return absl::OkStatus();
  timer_ = std::make_unique<ProgramTimer>(*context.timer, program_, [this] { return cancelled(); });
  if (context.artifacts.WasChecked(program_.digest, context.device)) return absl::OkStatus();
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = timer_->Check([this](int done, int total, const std::string& kernel) {
    AppendProgress(*log_, "check", done, total, kernel);
  });
  AddTime(report_.mutable_times(), "check", MillisecondsSince(start));
  if (!status.ok()) Forget(context, timer_->guilty());
  if (timer_->complete()) context.artifacts.PutChecked(program_.digest, context.device, true);
  return status;
}

absl::Status CompileJob::TimeProgram(const JobContext& context) {
  TimedProgram timed = timer_->Time([this](int done, int total, const std::string& kernel) {
    AppendProgress(*log_, "time", done, total, kernel);
  });
  const int guilty = timer_->guilty();
  timer_ = nullptr;  // with copies of every cubin; streams may hold this job for long
  if (timed.final) context.artifacts.PutTiming(program_.digest, context.device, timed.json);
  if (!timed.fault.ok()) {
    context.artifacts.PutChecked(program_.digest, context.device, false);
    Forget(context, guilty);
  }
  AppendReport(std::move(timed.json));
  return timed.fault;
}

// Nobody gets what a kernel at fault is part of from the store, and its code is compiled anew.
void CompileJob::Forget(const JobContext& context, int kernel) {
  if (kernel < 0) return;
  ++context.metrics.refused_kernels;
  context.artifacts.Forget(key_.kind(), key_.digest());
  const auto digest = cache::Digest::Parse(program_.program.kernels(kernel).key());
  if (digest.ok()) context.artifacts.Forget("kernel", *digest);
}

absl::Status CompileJob::BuildKernels(const JobContext& context, PlanResult& plan,
                                      StoredProgram& program, v1::Report& report) {
  std::map<cache::Digest, std::vector<int>> users;  // kernels of the program, by their action's key
  std::vector<cache::Key> keys;                     // each once
  for (int i = 0; i < plan.kernels_size(); ++i) {
    const KernelSource& source = plan.kernels(i);
    v1::stored::Texts* texts = program.ir.add_kernels();
    *texts->mutable_texts() = source.ir();
    if (!texts->texts().contains("cuda")) (*texts->mutable_texts())["cuda"] = source.cuda();
    cache::Key key =
        MakeKey("kernel", KeyFieldsFromProto(source.key_fields()), context.nvrtc_version);
    std::vector<int>& same = users[key.digest()];
    same.push_back(i);
    if (same.size() == 1) keys.push_back(std::move(key));
  }
  // The longest text first: an attention kernel takes several times as long as any other, and must
  // not be what one worker is left with at the end.
  const auto text_bytes = [&](const cache::Key& key) {
    return plan.kernels(users[key.digest()].front()).cuda().size();
  };
  std::stable_sort(keys.begin(), keys.end(), [&](const cache::Key& a, const cache::Key& b) {
    return text_bytes(a) > text_bytes(b);
  });
  AppendProgress(*log_, "compile", 0, keys.size());

  program.cubins.resize(plan.kernels_size());
  // One failure ends the others, as a cancelled job does.
  std::atomic<bool> failed{false};
  Results results;
  for (const cache::Key& key : keys) {
    context.kernels.Build(
        key, plan.kernels(users[key.digest()].front()), [&] { return failed || cancelled(); },
        [&results, digest = key.digest()](absl::StatusOr<BuiltKernel> built) {
          results.Put({digest, std::move(built)});
        });
  }
  absl::Status status;
  double nvrtc_ms = 0;
  for (size_t done = 1; done <= keys.size(); ++done) {
    const Results::Item item = results.Take();
    const std::vector<int>& same = users[item.key];
    const std::string& name = plan.kernels(same.front()).kernel().name();
    if (!item.built.ok()) {
      if (!failed) {
        status =
            absl::Status(item.built.status().code(),
                         absl::StrCat("kernel \"", name, "\": ", item.built.status().message()));
      }
      failed = true;
      continue;
    }
    const BuiltKernel& built = *item.built;
    if (built.hit) {
      report.set_hits(report.hits() + same.size());
    } else {
      report.set_misses(report.misses() + same.size());
    }
    nvrtc_ms += built.nvrtc_ms;
    for (const int i : same) {
      v1::Kernel* kernel = plan.mutable_program()->mutable_kernels(i);
      kernel->set_key(item.key.ToString());
      kernel->set_digest(built.kernel.digest);
      kernel->set_registers(built.kernel.facts.registers());
      kernel->set_spill_bytes(built.kernel.facts.spill_bytes());
      kernel->set_static_shared_bytes(built.kernel.facts.static_shared_bytes());
      kernel->set_cubin_bytes(built.kernel.facts.cubin_bytes());
      program.cubins[i] = built.kernel.cubin;
      LogEntry entry{.cubin = built.kernel.cubin, .ir = Share(program.ir.kernels(i))};
      v1::KernelReady* ready = entry.event.mutable_kernel();
      *ready->mutable_kernel() = *kernel;
      ready->set_hit(built.hit);
      *ready->mutable_times() = plan.kernels(i).times();
      if (!built.hit) {
        AddTime(ready->mutable_times(), "nvrtc", built.nvrtc_ms);
        AddTime(ready->mutable_times(), "store", built.store_ms);
      }
      if (IsChecked(context)) {
        held_.push_back(std::move(entry));
      } else {
        log_->Append(std::move(entry));
      }
    }
    AppendProgress(*log_, "compile", done, keys.size(), name);
  }
  context.metrics.kernel_hits += report.hits();
  context.metrics.kernel_misses += report.misses();
  AddTime(report.mutable_times(), "nvrtc", nvrtc_ms);
  return status;
}

}  // namespace hackc::server

// SPDX-License-Identifier: MIT
#include "server/event_log.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "server/milliseconds.h"

namespace hackc::server {

std::optional<v1::CompileEvent> EventStream::WaitNext() {
  while (true) {
    if (std::optional<v1::CompileEvent> event = Next()) return event;
    if (ended()) return std::nullopt;
    struct Signal {
      std::mutex mutex;
      std::condition_variable condition;
      bool set = false;
    };
    auto signal = std::make_shared<Signal>();
    OnReady([signal] {
      std::lock_guard lock(signal->mutex);
      signal->set = true;
      signal->condition.notify_all();
    });
    std::unique_lock lock(signal->mutex);
    signal->condition.wait(lock, [&] { return signal->set; });
  }
}

void EventLog::Append(LogEntry entry) {
  {
    std::lock_guard lock(mutex_);
    if (status_) return;
    entries_.push_back(std::make_shared<const LogEntry>(std::move(entry)));
  }
  Wake();
}

void EventLog::Finish(absl::Status status) {
  {
    std::lock_guard lock(mutex_);
    if (status_) return;
    status_ = std::move(status);
  }
  Wake();
}

std::shared_ptr<const LogEntry> EventLog::Get(size_t index) const {
  std::lock_guard lock(mutex_);
  return index < entries_.size() ? entries_[index] : nullptr;
}

std::optional<absl::Status> EventLog::EndAt(size_t index) const {
  std::lock_guard lock(mutex_);
  if (index < entries_.size()) return std::nullopt;
  return status_;
}

int EventLog::kernels() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry->event.has_kernel();
  }));
}

void EventLog::WhenReady(size_t index, std::function<void()> ready) {
  {
    std::lock_guard lock(mutex_);
    if (index >= entries_.size() && !status_) {
      waiting_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

// Readers wait only for what comes next, so every waiting reader is ready after each change.
void EventLog::Wake() {
  std::vector<std::function<void()>> ready;
  {
    std::lock_guard lock(mutex_);
    ready.swap(waiting_);
  }
  for (std::function<void()>& callback : ready) callback();
}

void LogStream::Leave() {
  std::function<void()> detach;
  std::shared_ptr<EventLog> log;
  {
    std::lock_guard lock(mutex_);
    if (!end_) end_ = EndLocked().value_or(absl::CancelledError("the reader has gone"));
    ready_ = nullptr;
    log.swap(log_);
    detach = std::exchange(detach_, nullptr);
  }
  if (detach) detach();
}

void LogStream::Attach(const std::shared_ptr<EventLog>& log, std::function<void()> detach) {
  size_t index;
  {
    std::lock_guard lock(mutex_);
    if (!end_) {
      log_ = log;
      detach_ = std::exchange(detach, nullptr);
    }
    index = index_;
  }
  if (detach) detach();
  WaitFor(*log, index);
}

void LogStream::End(absl::Status status) {
  std::function<void()> detach;
  {
    std::lock_guard lock(mutex_);
    if (EndLocked()) return;
    end_ = std::move(status);
    log_ = nullptr;
    detach = std::exchange(detach_, nullptr);
  }
  if (detach) detach();
  FireReady();
}

void LogStream::OnReady(std::function<void()> ready) {
  std::shared_ptr<EventLog> log;
  size_t index;
  {
    std::lock_guard lock(mutex_);
    ready_ = std::move(ready);
    log = log_;
    index = index_;
    if (!log && !end_) return;  // Attach or End comes back to it
  }
  if (log) {
    WaitFor(*log, index);
  } else {
    FireReady();
  }
}

void LogStream::WaitFor(EventLog& log, size_t index) {
  log.WhenReady(index, [weak = weak_from_this()] {
    if (std::shared_ptr<LogStream> self = weak.lock()) self->FireReady();
  });
}

void LogStream::FireReady() {
  std::function<void()> ready;
  {
    std::lock_guard lock(mutex_);
    ready = std::exchange(ready_, nullptr);
  }
  if (ready) ready();
}

std::optional<v1::CompileEvent> LogStream::Next() {
  std::shared_ptr<const LogEntry> entry;
  {
    std::lock_guard lock(mutex_);
    if (!log_ || !(entry = log_->Get(index_))) return std::nullopt;
    ++index_;
  }
  v1::CompileEvent event = entry->event;
  if (event.has_kernel()) {
    if (options_.with_cubins && entry->cubin) event.mutable_kernel()->set_cubin(*entry->cubin);
    if (options_.with_ir && entry->ir) {
      event.mutable_kernel()->mutable_ir()->insert(entry->ir->texts().begin(),
                                                   entry->ir->texts().end());
    }
  } else if (event.has_report()) {
    // How long this caller waited, which for one who joined late is less than the build took.
    event.mutable_report()->set_compile_ms(MillisecondsSince(start_));
    if (options_.with_ir && entry->ir) {
      event.mutable_report()->mutable_ir()->insert(entry->ir->texts().begin(),
                                                   entry->ir->texts().end());
    }
  }
  return event;
}

std::optional<absl::Status> LogStream::EndLocked() const {
  if (end_) return end_;
  return log_ ? log_->EndAt(index_) : std::nullopt;
}

bool LogStream::ended() const {
  std::lock_guard lock(mutex_);
  return EndLocked().has_value();
}

absl::Status LogStream::status() const {
  std::lock_guard lock(mutex_);
  return EndLocked().value_or(absl::UnknownError("the stream has not ended"));
}

}  // namespace hackc::server

// SPDX-License-Identifier: MIT
// The answer to one compile request: events, then a status. A stream is a cursor into the event log
// of a job that any number of callers share, so a slow reader costs no memory of its own and
// back-pressure is simply not calling Next().
//
//   std::shared_ptr<EventStream> stream = engine.Submit(request);
//   stream->OnReady([&] { ... stream->Next() ... });   // asynchronous
//   while (std::optional<v1::CompileEvent> event = stream->WaitNext()) { ... }  // blocking
//   absl::Status status = stream->status();
//
// Thread safety: one reader at a time; Cancel() may be called from any thread.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "hackc/v1/compiler.pb.h"

namespace hackc::server {

class EventStream {
 public:
  virtual ~EventStream() = default;

  // Calls `ready` once, as soon as Next() would give an event or the stream has ended: inside this
  // call when that is so already, else later on an engine thread. At most one callback is
  // outstanding.
  virtual void OnReady(std::function<void()> ready) = 0;

  // The next event if there is one now.
  virtual std::optional<v1::CompileEvent> Next() = 0;

  // Whether all events have been taken and status() is final.
  virtual bool ended() const = 0;
  virtual absl::Status status() const = 0;

  // The caller wants no more. A build that nobody else asked for stops at the next kernel.
  virtual void Cancel() = 0;

  // Blocks until there is an event; nullopt at the end.
  std::optional<v1::CompileEvent> WaitNext();
};

}  // namespace hackc::server

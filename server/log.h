// SPDX-License-Identifier: MIT
// The server's logger, on stderr. Until ConfigureLog it says only errors: in a client's process
// what goes wrong is the answer's status.
//
//   Log().warn("cannot store {}: {}", name, reason);
//
// Thread safety: Log may be called from any thread; ConfigureLog before other threads start.
#pragma once

#include <spdlog/logger.h>

#include <string_view>

namespace hackc::server {

spdlog::logger& Log();

enum class LogFormat { kText, kJson };
// Json: one object a line, {"time", "level", "message"}. To be called before other threads log.
void ConfigureLog(LogFormat format);

}  // namespace hackc::server

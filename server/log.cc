// SPDX-License-Identifier: MIT
#include "server/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace hackc::server {
namespace {

// %v as a JSON string: quoted, escaped, with bytes that are no UTF-8 replaced.
class JsonMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string json =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(json.data(), json.data() + json.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

}  // namespace

spdlog::logger& Log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "hackc", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::err);
    return made;
  }();
  return *logger;
}

void ConfigureLog(LogFormat format) {
  if (format == LogFormat::kText) {
    Log().set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  } else {
    auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
    formatter->add_flag<JsonMessage>('j');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%j})");
    Log().set_formatter(std::move(formatter));
  }
  Log().set_level(spdlog::level::info);
  Log().flush_on(spdlog::level::info);
}

}  // namespace hackc::server

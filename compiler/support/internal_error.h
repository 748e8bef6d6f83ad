// SPDX-License-Identifier: MIT
// Contradictions inside the compiler, as opposed to anything that a caller can cause (those are
// absl::Status). `HACKC_CHECK(cond) << "detail"` throws InternalError; only the pipeline catches it
// and adds the pass's name and the IR before it. Nothing below main aborts or exits.
//
//   HACKC_CHECK(extent > 0) << "loop " << name << " has extent " << extent;
//
// Thread safety: an exception is of the thread that throws it.
#pragma once

#include <sstream>
#include <stdexcept>

namespace hackc {

class InternalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Collects the message and throws at the end of the full expression.
class InternalErrorBuilder {
 public:
  InternalErrorBuilder(const char* file, int line, const char* condition) {
    stream_ << file << ":" << line << ": " << condition << ": ";
  }
  [[noreturn]] ~InternalErrorBuilder() noexcept(false) { throw InternalError(stream_.str()); }
  InternalErrorBuilder& operator<<(const auto& value) {
    stream_ << value;
    return *this;
  }

 private:
  std::ostringstream stream_;
};

}  // namespace hackc

#define HACKC_CHECK(condition) \
  if (condition) {             \
  } else                       \
    ::hackc::InternalErrorBuilder(__FILE__, __LINE__, "internal: " #condition)
#define HACKC_FAIL() ::hackc::InternalErrorBuilder(__FILE__, __LINE__, "internal")

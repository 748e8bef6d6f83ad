// SPDX-License-Identifier: MIT
#include "client/cli/progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hackc::client {
namespace {
// Carriage return and "erase to the end of the line"; longer lines would wrap and stay on the
// screen.
constexpr char kRewind[] = "\r\x1b[K";
constexpr size_t kLiveWidth = 78;
}  // namespace

ProgressPrinter::~ProgressPrinter() {
  if (dirty_) stream_ << kRewind << std::flush;
}

void ProgressPrinter::Show(const v1::CompileEvent& event) {
  if (event.has_progress()) {
    const v1::Progress& progress = event.progress();
    std::string text = progress.stage();
    if (progress.total() > 0) absl::StrAppend(&text, " ", progress.done(), "/", progress.total());
    if (!progress.detail().empty()) absl::StrAppend(&text, " ", progress.detail());
    Print(text);
  } else if (event.has_kernel()) {
    const v1::KernelReady& ready = event.kernel();
    double total = 0;
    for (const v1::StageTime& time : ready.times()) total += time.milliseconds();
    Print(ready.hit()
              ? absl::StrCat("kernel ", ready.kernel().name(), " from the cache")
              : absl::StrFormat("kernel %s compiled in %.0f ms", ready.kernel().name(), total));
  }
}

void ProgressPrinter::Print(const std::string& text) {
  if (text == last_) return;
  last_ = text;
  if (live_) {
    stream_ << kRewind << text.substr(0, kLiveWidth) << std::flush;
    dirty_ = true;
  } else {
    stream_ << text << std::endl;
  }
}

}  // namespace hackc::client

// SPDX-License-Identifier: MIT
#include "tools/opt/case_file.h"

#include <charconv>

#include "absl/strings/str_split.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/text.h"

namespace hackc::opt {
namespace {

template <typename Integer>
bool ParseInteger(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "1..16"
bool ParseRange(std::string_view text, frontend::ShapeRange& range) {
  const size_t dots = text.find("..");
  return dots != std::string_view::npos && ParseInteger(text.substr(0, dots), range.min) &&
         ParseInteger(text.substr(dots + 2), range.max);
}

bool ReadRequest(const std::string& key, const std::string& value, CompileRequest& request) {
  if (key == "dtype:") {
    request.dtype = value == "float32"    ? program::DType::kFloat32
                    : value == "bfloat16" ? program::DType::kBFloat16
                    : value == "float16"  ? program::DType::kFloat16
                                          : program::DType::kUnspecified;
    return request.dtype != program::DType::kUnspecified;
  }
  if (key == "last_logits:") return request.last_logits = value == "yes";
  return (key == "batch:" && ParseRange(value, request.batch)) ||
         (key == "seq:" && ParseRange(value, request.seq)) ||
         (key == "past:" && ParseRange(value, request.past)) ||
         (key == "page_size:" && ParseInteger(value, request.page_size)) ||
         (key == "layers:" && ParseInteger(value, request.layers));
}

absl::Status ReadFirstLine(std::string_view line, CaseFile& file) {
  const std::vector<std::string> words =
      absl::StrSplit(View(line), absl::ByAnyChar(" #"), absl::SkipEmpty());
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& key = words[i];
    const std::string& value = words[i + 1];
    if (key == "pass:") {
      file.passes = SplitCommas(value);
      if (value == "none") file.passes.clear();
    } else if (key == "symbols:") {
      HACKC_ASSIGN_OR_RETURN(file.symbols, ParseSymbols(value));
    } else if (key == "target:") {
      file.target = value;
    } else if (key == "kind:" && (value == "does" || value == "leaves" || value == "edge")) {
      file.kind = value;
    } else if (key == "entry:") {
      file.entry = value;
    } else if (key == "verify:" && value == "yes") {
      file.verify = true;
    } else if (!(key == "seed:" && ParseInteger(value, file.seed)) &&
               !ReadRequest(key, value, file.request)) {
      return absl::InvalidArgumentError(Cat(
          "line 1: expected `pass: NAMES`, `symbols: a=1,b=2`, `seed: N`, `target: ARCH`, `verify: "
          "yes`, `kind: does`, `leaves` or `edge`, `entry: NAME`, or a part of a request such as "
          "`seq: 1..16`, got `",
          key, " ", value, "`"));
    }
  }
  if (words.size() % 2 != 0) {
    return absl::InvalidArgumentError(Cat("line 1: `", words.back(), "` has no value"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> SplitCommas(std::string_view text) {
  return absl::StrSplit(View(text), ',', absl::SkipEmpty());
}

absl::StatusOr<std::map<std::string, int64_t>> ParseSymbols(std::string_view text) {
  std::map<std::string, int64_t> symbols;
  for (const std::string& item : SplitCommas(text)) {
    const size_t equals = item.find('=');
    int64_t value = 0;
    if (equals == std::string::npos || equals == 0 ||
        !ParseInteger(std::string_view(item).substr(equals + 1), value)) {
      return absl::InvalidArgumentError(Cat("symbols: expected NAME=INTEGER, got `", item, "`"));
    }
    symbols[item.substr(0, equals)] = value;
  }
  return symbols;
}

absl::StatusOr<CaseFile> ReadCase(std::string_view text) {
  CaseFile file;
  const std::string_view first = text.substr(0, text.find(':') + 1);
  if (first == "# pass:" || first == "# symbols:") {
    HACKC_RETURN_IF_ERROR(ReadFirstLine(text.substr(0, text.find('\n')), file));
  }
  const size_t expected = text.find(Cat("\n", kExpectedLine));
  file.input = text.substr(0, expected == std::string_view::npos ? expected : expected + 1);
  if (expected != std::string_view::npos) {
    file.expected = text.substr(expected + 1 + kExpectedLine.size());
  }
  return file;
}

}  // namespace hackc::opt

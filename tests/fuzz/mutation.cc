// SPDX-License-Identifier: MIT
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace hackc::fuzz {
namespace {

constexpr size_t kMaxInput = 1 << 16;

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' ||
         c == '@';
}

// Begin and end of the word at or after `from`.
std::pair<size_t, size_t> WordAt(const std::string& text, size_t from) {
  while (from < text.size() && !IsWordChar(text[from])) ++from;
  size_t end = from;
  while (end < text.size() && IsWordChar(text[end])) ++end;
  return {from, end};
}

// Begin and end of the line that holds `at`, with its newline.
std::pair<size_t, size_t> LineAt(const std::string& text, size_t at) {
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t after = text.find('\n', at);
  return {before == std::string::npos ? 0 : before + 1,
          after == std::string::npos ? text.size() : after + 1};
}

}  // namespace

void Violation(std::string_view what, std::string_view detail) {
  std::fprintf(stderr, "violated: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

int64_t InterestingInteger(Random& random) {
  static constexpr int64_t kValues[] = {0,
                                        -1,
                                        1,
                                        2,
                                        3,
                                        5,
                                        7,
                                        8,
                                        13,
                                        16,
                                        31,
                                        32,
                                        40,
                                        64,
                                        255,
                                        1024,
                                        65536,
                                        int64_t{1} << 20,
                                        1 << 30,
                                        std::numeric_limits<int32_t>::max(),
                                        std::numeric_limits<int32_t>::min(),
                                        int64_t{1} << 32,
                                        int64_t{1} << 60,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
  return kValues[random.Below(std::size(kValues))];
}

std::string MutateBytes(std::string input, Random& random) {
  if (input.empty()) return std::string(1, static_cast<char>(random.Bits()));
  const size_t at = random.Below(input.size());
  switch (random.Below(5)) {
    case 0: input.erase(at, 1 + random.Below(8)); break;
    case 1: input.insert(at, 1, static_cast<char>(random.Bits())); break;
    case 2: input[at] = static_cast<char>(random.Bits()); break;
    case 3: input[at] = static_cast<char>(input[at] ^ (1 << random.Below(8))); break;
    default: input.insert(at, input.substr(random.Below(input.size()), random.Below(32)));
  }
  if (input.size() > kMaxInput) input.resize(kMaxInput);
  return input;
}

std::string MutateText(std::string input, Random& random) {
  static const std::string kBytes = " %@[](){}<>-=*/,.0123456789abfinsxl\"#\n&|!";
  for (size_t i = 0, count = 1 + random.Below(3); i < count && !input.empty(); ++i) {
    const size_t at = random.Below(input.size());
    switch (random.Below(9)) {
      case 0: input.erase(at, 1 + random.Below(6)); break;
      case 1: input.insert(at, 1, kBytes[random.Below(kBytes.size())]); break;
      case 2: input[at] = kBytes[random.Below(kBytes.size())]; break;
      case 3: {  // a line away, or somewhere else, or twice
        const auto [begin, end] = LineAt(input, at);
        const std::string line = input.substr(begin, end - begin);
        if (!random.OneIn(3)) input.erase(begin, end - begin);
        if (!random.OneIn(3)) {
          input.insert(LineAt(input, random.Below(input.size())).first, line);
        }
        break;
      }
      case 4:
      case 5: {  // a word for another
        const auto [begin, end] = WordAt(input, at);
        const auto [other, other_end] = WordAt(input, random.Below(input.size()));
        const std::string word = input.substr(other, other_end - other);
        input.replace(begin, end - begin, word);
        break;
      }
      case 6:
      case 7: {  // another number
        const size_t digit = input.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        size_t end = digit;
        while (end < input.size() && std::isdigit(static_cast<unsigned char>(input[end]))) ++end;
        input.replace(digit, end - digit, std::to_string(InterestingInteger(random)));
        break;
      }
      default: {  // nested deeper: a part round itself
        const std::string part = input.substr(at, random.Below(64));
        for (size_t copies = random.Below(random.OneIn(8) ? 200 : 3); copies > 0; --copies) {
          input.insert(at, part);
        }
      }
    }
  }
  if (input.size() > kMaxInput) input.resize(kMaxInput);
  return input;
}

}  // namespace hackc::fuzz

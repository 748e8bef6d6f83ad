// SPDX-License-Identifier: MIT
#include "compiler/codegen/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/prelude.h"

namespace hackc::codegen {
namespace {

// The keywords of C++20, and the built-in functions and variables that generated text uses.
constexpr char kReserved[] =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept const const_cast consteval constexpr constinit continue "
    "co_await co_return co_yield decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq abs cos cosf erf erff exp exp2 exp2f "
    "expf fabs fabsf fmax fmaxf fmin fminf log logf max min pow powf rsqrt rsqrtf sin sinf sqrt "
    "sqrtf tanh tanhf threadIdx blockIdx blockDim gridDim warpSize uint2 uint4 hackc_shared";

}  // namespace

std::string Sanitize(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = absl::ascii_isalnum(c) ? c : '_';
  return result;
}

Names::Names() {
  for (absl::string_view word : absl::StrSplit(kReserved, ' ')) taken_.Add(std::string(word));
  for (std::string_view word : Prelude::Names()) taken_.Add(word);
}

const std::string& Names::Get(Kind kind, const std::string& name) {
  auto [it, inserted] = names_.try_emplace({kind, name});
  if (!inserted) return it->second;
  std::string base = Sanitize(name);
  // A leading digit is no name; a leading or double underscore is the implementation's.
  if (base.empty() || base[0] == '_' || absl::ascii_isdigit(base[0])) base.insert(0, "v");
  for (size_t at; (at = base.find("__")) != std::string::npos;) base.erase(at, 1);
  return it->second = taken_.Unique(base);
}

}  // namespace hackc::codegen

// SPDX-License-Identifier: MIT
// What is known of integers at compile time: intervals, divisors and provable comparisons.
//
//   RangeMap ranges;
//   ranges.SetSymbol("seq", {1, 2048});
//   ranges.SetAxis("s", MakeSymbol("seq"));                    // 0 <= s < seq
//   Bounds(Axis("s") * 2 + 1, ranges);                         // {1, 4095}
//   ProveLess(Axis("s"), MakeSymbol("seq"), ranges);  // true, although the intervals overlap
//   Divides(Axis("s") * 8 + 16, 8);                            // true
//
// Thread safety: const methods may run on several threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/buffer.h"
#include "compiler/ir/expr.h"
#include "compiler/support/cat.h"

namespace hackc::ir {

// Inclusive. A side at kNoLimit or beyond is not known.
struct Range {
  int64_t min = 0;
  int64_t max = 0;
  bool operator==(const Range&) const = default;
};
inline constexpr int64_t kNoLimit = int64_t{1} << 60;
inline constexpr Range kUnknownRange = {-kNoLimit, kNoLimit};

// The variable that stands for a symbol or a hardware index; no name of a program has a space.
inline std::string VarOf(std::string_view symbol) { return Cat(" ", symbol); }
inline std::string VarOf(BuiltinKind kind) { return VarOf(Name(kind)); }
constexpr BuiltinKind BlockIndex(int dim) { return static_cast<BuiltinKind>(1 + dim); }

class RangeMap {
 public:
  RangeMap() = default;
  explicit RangeMap(const std::vector<SymbolDecl>& symbols);

  void SetSymbol(const std::string& name, Range range) { SetVar(VarOf(name), range); }
  void SetVar(const std::string& name, Range range);
  void SetBuiltin(BuiltinKind kind, Range range) { SetVar(VarOf(kind), range); }
  // A variable with 0 <= name < extent; `extent` is remembered for proofs, and bounded by what is
  // known.
  void SetAxis(const std::string& name, const Expr& extent);

  // What was set, or `otherwise`.
  Range OfVar(const std::string& name, Range otherwise) const {
    return FindOr(vars_, name, otherwise);
  }
  Expr FindExtent(const std::string& name) const {  // null when not set by SetAxis
    return FindOr(extents_, name);
  }

 private:
  std::map<std::string, Range> vars_;
  std::map<std::string, Expr> extents_;
};

// Interval that holds every value of the integer (or bool) expression `e`.
Range Bounds(const Expr& e, const RangeMap& ranges);

// An integer sum, difference, product, shift to the left or negation: what may leave its dtype.
bool IsSum(const Expr& e);

// A number that divides every value of `e`; 0 when `e` is always 0.
int64_t KnownDivisor(const Expr& e);
// True when `e` is provably a multiple of n > 0.
bool Divides(const Expr& e, int64_t n);

// What `e` is at most, where it grows with the clamped loads in it: of min(max(@x[i], 0), n), n.
Expr WithoutLoads(const Expr& e);

// True when provable; false when not known.
bool Grows(const Expr& e, const std::string& name);  // never falls where variable `name` rises
bool ProveNonNegative(const Expr& e, const RangeMap& ranges);
bool ProveLess(const Expr& a, const Expr& b, const RangeMap& ranges);       // a < b
bool ProveLessEqual(const Expr& a, const Expr& b, const RangeMap& ranges);  // a <= b

}  // namespace hackc::ir

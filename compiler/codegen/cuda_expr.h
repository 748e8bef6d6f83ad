// SPDX-License-Identifier: MIT
// Kernel IR expressions as CUDA C++: one printer for one kernel. The emitter declares buffers and
// ranges as it meets them; expressions then print with the fewest parentheses that keep their tree.
//
//   CudaExprs exprs({{"seq", 1, 2048}});
//   exprs.DeclareGlobal({"x", DType::kBF16, {MakeSymbol("seq"), IntLit(64)}});
//   exprs.Print(f32(@x[%m, %k]))        // "bf16_to_float(x[m * 64 + k])"
//
// Indices are int. A buffer that may hold 2^31 bytes or more is indexed in long long. Division and
// remainder of what is provably not negative are C's own; otherwise helpers that round towards
// minus infinity. Thread safety: an object belongs to one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/names.h"
#include "compiler/codegen/prelude.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/stmt.h"

namespace hackc::codegen {

class CudaExprs {
 public:
  explicit CudaExprs(const std::vector<ir::SymbolDecl>& symbols);

  void DeclareGlobal(const ir::BufferDecl& buffer);
  void DeclareAlloc(const ir::Alloc& alloc);

  // The C++ type that holds an element: "float", "bf16", ...
  std::string Type(ir::DType dtype);
  std::string Print(const ir::Expr& e) { return PrintAbove(e, 0); }
  // "x[offset]", or the bare name of a scalar.
  std::string Element(const std::string& buffer, const std::vector<ir::Expr>& indices);
  // "&x[offset]".
  std::string Address(const std::string& buffer, const std::vector<ir::Expr>& indices);
  ir::DType TypeOf(const std::string& buffer) const;

  Names& names() { return names_; }
  Prelude& prelude() { return prelude_; }
  ir::RangeMap& ranges() { return ranges_; }
  const std::set<ir::BuiltinKind>& builtins() const { return builtins_; }  // those printed so far

 private:
  struct BufferInfo {
    ir::DType dtype;
    std::vector<ir::Expr> strides;
    ir::DType index = ir::DType::kI32;  // of offsets
  };

  const BufferInfo& Info(const std::string& buffer) const;
  std::string PrintAbove(const ir::Expr& e,
                         int precedence);  // in parentheses if it binds less tightly
  // Text of `e` and how tightly it binds.
  std::string PrintNode(const ir::Expr& e, int& precedence);
  std::string PrintFloat(double value, ir::DType dtype);
  std::string PrintUnary(const ir::Unary& n, ir::DType dtype, int& precedence);
  std::string PrintBinary(const ir::Binary& n, int& precedence);
  std::string PrintCast(const ir::Cast& n, int& precedence);
  std::string PrintShuffle(const ir::Shuffle& n, ir::DType dtype);

  Names names_;
  Prelude prelude_;
  ir::RangeMap ranges_;
  std::map<std::string, BufferInfo> buffers_;
  std::set<ir::BuiltinKind> builtins_;
};

}  // namespace hackc::codegen

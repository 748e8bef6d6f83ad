// SPDX-License-Identifier: MIT
#include "compiler/program/reference_kernel.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/program/dim_expr.h"
#include "compiler/program/kernel_contract.h"

namespace hackc::program {
namespace {

using ir::As;
using ir::Block;
using ir::Expr;
using ir::Monoid;
using ir::Stmt;

constexpr ir::DType kF64 = ir::DType::kF64;
constexpr int64_t kLongestReduction = 1 << 20;  // where a bound is not known
constexpr int kThreads = 32;  // few in a block: small checks still reach many multiprocessors

class Plain {
 public:
  explicit Plain(const ir::LoopFn& loop) : loop_(loop) {}

  ir::KernelFn Run() {
    std::vector<const ir::For*> axes;
    const Block* body = &loop_.fn.body;
    while (body->size() == 1) {
      const auto* loop = As<ir::For>(body->front());
      if (!loop || loop->role != ir::AxisRole::kFree || !ir::FreeVars(loop->extent).empty()) break;
      axes.push_back(loop);
      body = &loop->body;
    }
    ir::KernelFn kernel;
    kernel.fn = loop_.fn;
    kernel.threads = kThreads;
    // The last axis is cut into blocks of threads, the others count blocks.
    const Expr last = axes.empty() ? ir::IntLit(1) : axes.back()->extent;
    const Expr strips = ir::CeilDiv(last, kThreads);
    const Expr block = ir::MakeBuiltin(ir::BuiltinKind::kBlockX);
    const Expr lane = ir::Mod(block, strips) * kThreads + ir::MakeBuiltin(ir::BuiltinKind::kThread);
    Expr blocks = strips;
    Block lets;
    for (size_t i = axes.size(); i-- > 0;) {
      const bool is_last = i + 1 == axes.size();
      const Expr at = is_last ? lane : ir::Mod(ir::FloorDiv(block, blocks), axes[i]->extent);
      lets.push_back(ir::MakeStmt(ir::Let{axes[i]->axis, at}));
      if (!is_last) blocks = blocks * axes[i]->extent;
    }
    kernel.grid = {blocks, ir::IntLit(1), ir::IntLit(1)};
    const Expr own = axes.empty() ? lane : ir::Axis(axes.back()->axis);
    lets.push_back(ir::MakeStmt(ir::If{ir::Lt(own, last), Lower(*body)}));
    kernel.fn.body = std::move(lets);
    return kernel;
  }

 private:
  Block Lower(const Block& block) {
    Block out;
    for (const Stmt& stmt : block) {
      if (const auto* loop = As<ir::For>(stmt)) {
        ir::For serial = *loop;
        serial.kind = ir::LoopKind::kSerial;
        serial.extent = Map(loop->extent);
        serial.body = Lower(loop->body);
        out.push_back(ir::MakeStmt(std::move(serial)));
      } else if (const auto* state = As<ir::Accumulator>(stmt)) {
        Declare(*state, out);
      } else if (const auto* update = As<ir::Accumulate>(stmt)) {
        Update(*update, out);
      } else {
        for (Stmt& mapped : ir::MapExprs({stmt}, [this](const Expr& e) { return Map(e); }))
          out.push_back(std::move(mapped));
      }
    }
    return out;
  }

  // Component `c` of a state is a register array of its own.
  static std::string Part(const std::string& name, size_t c) {
    return name + "_part" + std::to_string(c);
  }

  void Declare(const ir::Accumulator& state, Block& out) {
    int64_t elements = 1;
    for (const Expr& extent : state.extents) elements *= ir::AsInt(extent).value();
    states_[state.name] = &state;
    const std::vector<double> identity = ir::Identity(state.monoid);
    for (size_t c = 0; c < identity.size(); ++c) {
      const std::string part = Part(state.name, c), axis = part + "_at";
      out.push_back(ir::MakeStmt(ir::Alloc{.name = part, .dtype = kF64, .extents = {elements}}));
      const ir::Store init{part, {ir::Axis(axis)}, ir::FloatLit(identity[c], kF64), nullptr};
      out.push_back(ir::MakeStmt(ir::For{.axis = axis,
                                         .kind = ir::LoopKind::kSerial,
                                         .extent = ir::IntLit(elements),
                                         .body = {ir::MakeStmt(init)}}));
    }
  }

  Expr Element(const std::string& name, size_t c, const std::vector<Expr>& indices) const {
    Expr at = ir::IntLit(0);
    const std::vector<Expr>& extents = states_.at(name)->extents;
    for (size_t i = 0; i < indices.size(); ++i) at = at * extents[i] + indices[i];
    return ir::MakeLoad(Part(name, c), kF64, {at});
  }

  void Update(const ir::Accumulate& update, Block& out) {
    std::vector<Expr> indices, operands;
    for (const Expr& index : update.indices) indices.push_back(Map(index));
    for (const Expr& operand : update.operands)
      operands.push_back(ir::MakeCast(kF64, Map(operand)));
    Expr guard = update.guard ? Map(update.guard) : nullptr;
    auto old = [&](size_t c) { return Element(update.name, c, indices); };
    auto store = [&](size_t c, Expr value, Block& to) {
      to.push_back(ir::MakeStmt(ir::Store{Part(update.name, c), As<ir::Load>(old(c))->indices,
                                          std::move(value), nullptr}));
    };
    Block body;
    switch (states_.at(update.name)->monoid) {
      case Monoid::kSum: store(0, old(0) + operands[0], body); break;
      case Monoid::kProduct: store(0, old(0) * operands[0], body); break;
      case Monoid::kMax: store(0, ir::Max(old(0), operands[0]), body); break;
      case Monoid::kMin: store(0, ir::Min(old(0), operands[0]), body); break;
      case Monoid::kSoftmaxSum:
      case Monoid::kLogSumExp: {
        auto let = [&](const char* what, Expr value) {
          std::string name = update.name + what + std::to_string(updates_);
          body.push_back(ir::MakeStmt(ir::Let{name, std::move(value)}));
          return ir::MakeVar(name, kF64);
        };
        auto exp = [](const Expr& e) { return ir::MakeUnary(ir::UnaryOp::kExp, e); };
        ++updates_;
        const Expr score = let("_score", operands[0]), most = let("_most", ir::Max(old(0), score));
        const Expr scale = let("_scale", exp(old(0) - most)),
                   weight = let("_weight", exp(score - most));
        store(1, old(1) * scale + weight, body);
        if (operands.size() > 1) store(2, old(2) * scale + weight * operands[1], body);
        store(0, most, body);
        // A score of -inf changes nothing, and -inf - -inf is no number.
        guard = ir::And(guard, ir::Lt(ir::FloatLit(-std::numeric_limits<double>::infinity(), kF64),
                                      operands[0]));
      }
    }
    if (guard) body = {ir::MakeStmt(ir::If{std::move(guard), std::move(body)})};
    out.insert(out.end(), body.begin(), body.end());
  }

  // Reads of states become reads of their parts.
  Expr Map(const Expr& e) const {
    return ir::Rewrite(e, [this](const Expr& node) -> Expr {
      const auto* var = As<ir::Var>(node);
      const auto* load = As<ir::Load>(node);
      const std::string* name = var ? &var->name : load ? &load->buffer : nullptr;
      if (name == nullptr || !states_.count(*name)) return nullptr;
      const std::vector<Expr> indices = load ? load->indices : std::vector<Expr>();
      Expr value = Element(*name, 0, indices);
      const Monoid monoid = states_.at(*name)->monoid;
      if (monoid == Monoid::kSoftmaxSum || monoid == Monoid::kLogSumExp) {
        const Expr zero = ir::FloatLit(0, kF64), sum = Element(*name, 1, indices);
        Expr seen, nothing = zero;
        if (monoid == Monoid::kSoftmaxSum) {
          seen = ir::MakeBinary(ir::BinaryOp::kDiv, Element(*name, 2, indices), sum);
        } else {
          seen = value + ir::MakeUnary(ir::UnaryOp::kLog, sum);
          nothing = value;  // -inf still
        }
        value = ir::MakeSelect(ir::Lt(zero, sum), seen, nothing);
      }
      if (load && load->guard) value = ir::MakeSelect(load->guard, value, ir::FloatLit(0, kF64));
      return ir::MakeCast(ir::DType::kF32, value);
    });
  }

  const ir::LoopFn& loop_;
  std::map<std::string, const ir::Accumulator*> states_;  // of the loop function
  int updates_ = 0;
};

}  // namespace

ir::KernelFn PlainKernel(const ir::LoopFn& loop) { return Plain(loop).Run(); }

std::vector<BufferUse> UsesOf(const ir::LoopFn& loop) {
  std::vector<BufferUse> uses;
  std::map<std::string, size_t> places;
  for (const ir::BufferDecl& buffer : loop.fn.buffers) {
    places[buffer.name] = uses.size();
    BufferUse& use = uses.emplace_back();
    use.dtype = FromIr(buffer.dtype);
    for (const Expr& extent : buffer.shape) use.shape.push_back(FromExpr(extent));
    use.read = buffer.access != ir::Access::kWrite;
    use.written = buffer.access != ir::Access::kRead;
  }
  // Integers that an index is made of are below the extent that is indexed.
  auto note = [&](const std::string& buffer, const std::vector<Expr>& indices) {
    const size_t* target = FindOrNull(places, buffer);
    for (size_t d = 0; target && d < indices.size(); ++d) {
      ir::Walk(indices[d], [&](const ir::Load& load) {
        const size_t* source = FindOrNull(places, load.buffer);
        if (!source || ir::IsFloat(load.dtype)) return;
        DimExpr& below = uses[*source].below;
        const DimExpr& extent = uses[*target].shape[d];
        below = below == DimExpr() ? extent : Min(below, extent);
      });
    }
  };
  ir::WalkExprs(loop.fn.body, [&](const ir::Load& load) { note(load.buffer, load.indices); });
  ir::WalkStmts(loop.fn.body, [&](const ir::Store& store) { note(store.buffer, store.indices); });
  return uses;
}

Rounding RoundingOf(const ir::LoopFn& loop) {
  Rounding rounding;
  ir::RangeMap ranges(loop.fn.symbols);
  auto note = [&](ir::DType dtype) {
    const bool half = dtype == ir::DType::kF16 && rounding.coarsest != DType::kBFloat16;
    if (half || dtype == ir::DType::kBF16) rounding.coarsest = FromIr(dtype);
  };
  ir::WalkStmts(loop.fn.body, [&](const ir::For& nest) {
    ranges.SetAxis(nest.axis, nest.extent);
    if (nest.role == ir::AxisRole::kFree) return;
    const int64_t longest = ir::Bounds(nest.extent, ranges).max;
    rounding.longest_reduction =
        std::max(rounding.longest_reduction, std::min(longest, kLongestReduction));
  });
  // The weights of a softmax may be rounded to the values' dtype, which a matrix instruction asks
  // for.
  std::set<std::string> softmaxes;
  ir::WalkStmts(
      loop.fn.body,
      [&](const ir::Accumulator& state) {
        if (state.monoid == Monoid::kSoftmaxSum) softmaxes.insert(state.name);
      },
      [&](const ir::Accumulate& update) {
        if (!softmaxes.count(update.name)) return;
        ir::Walk(update.operands[1], [&](const ir::Load& load) { note(load.dtype); });
      });
  ir::WalkExprs(loop.fn.body, [&](const ir::Cast& cast) { note(cast.dtype); });
  return rounding;
}

}  // namespace hackc::program

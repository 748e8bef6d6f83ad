// SPDX-License-Identifier: MIT
#include "compiler/interp/lane_expr.h"

#include <cmath>

namespace hackc::interp {
namespace {

const Active kOneLane = {0};

}  // namespace

int64_t LaneAccumulator::Offset(const int64_t* indices, size_t rank) const {
  if (rank != extents.size()) {
    Fail("accumulator ", name, ": index rank ", rank, ", declared rank ", extents.size());
  }
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (indices[i] < 0 || indices[i] >= extents[i]) {
      Fail("accumulator ", name, ": index ", indices[i], " of dimension ", i, " is outside extent ",
           extents[i]);
    }
    offset = offset * extents[i] + indices[i];
  }
  return offset;
}

const Names::Binding& Names::Find(const std::string& name) const {
  auto it = bindings.find(name);
  if (it == bindings.end()) Fail("`", name, "` is not defined here");
  return it->second;
}

LaneMemory& Names::Memory(LaneState& state, const std::string& name) const {
  const Binding& binding = Find(name);
  if (binding.kind != Binding::Kind::kMemory) Fail("`", name, "` is not a buffer");
  return state.memories[binding.index];
}

std::unique_ptr<LaneExpr> LaneExpr::Compile(const ir::Expr& e, const Names& names,
                                            const LaneState& state) {
  if (!e) return nullptr;
  auto out = std::make_unique<LaneExpr>();
  out->dtype_ = e->dtype;
  out->is_float_ = ir::IsFloat(e->dtype);
  out->uniform_ = true;
  auto child = [&](const ir::Expr& operand) {
    out->children_.push_back(Compile(operand, names, state));
    out->uniform_ = out->uniform_ && out->children_.back()->uniform_;
  };
  auto constant_integer = [&](int64_t value) {
    out->result_.resize(1);
    out->result_[0].i = value;
  };
  std::visit(
      [&](const auto& n) {
        using T = std::decay_t<decltype(n)>;
        if constexpr (std::is_same_v<T, ir::IntLiteral>) {
          constant_integer(n.value);
        } else if constexpr (std::is_same_v<T, ir::FloatLiteral>) {
          out->result_.resize(1);
          out->result_[0].f = RoundResult(state.arithmetic, n.dtype, n.value);
        } else if constexpr (std::is_same_v<T, ir::Symbol>) {
          auto it = names.symbols.find(n.name);
          if (it == names.symbols.end()) Fail("symbol ", n.name, " has no value");
          constant_integer(it->second);
        } else if constexpr (std::is_same_v<T, ir::Builtin>) {
          out->slot_ = true;
          out->index_ = names.builtin_slots[static_cast<int>(n.kind)];
          out->uniform_ = n.kind != ir::BuiltinKind::kThread;
        } else if constexpr (std::is_same_v<T, ir::Var>) {
          const Names::Binding& binding = names.Find(n.name);
          if (binding.kind == Names::Binding::Kind::kMemory)
            Fail("%", n.name, " is a buffer, not a value");
          out->slot_ = binding.kind == Names::Binding::Kind::kSlot;
          out->accumulator_ = !out->slot_;
          if (out->accumulator_) out->eval_ = &LaneExpr::EvalLoad;
          out->index_ = binding.index;
          out->uniform_ = binding.uniform;
        } else if constexpr (std::is_same_v<T, ir::Unary>) {
          out->eval_ = out->is_float_ ? &LaneExpr::EvalFloatUnary : &LaneExpr::EvalIntUnary;
          out->unary_ = n.op;
          child(n.a);
        } else if constexpr (std::is_same_v<T, ir::Binary>) {
          const bool floats = ir::IsFloat(n.a->dtype);
          out->eval_ = !floats              ? &LaneExpr::EvalIntBinary
                       : IsComparison(n.op) ? &LaneExpr::EvalCompare
                                            : &LaneExpr::EvalFloatBinary;
          if (n.op == ir::BinaryOp::kAnd || n.op == ir::BinaryOp::kOr)
            out->eval_ = &LaneExpr::EvalLogic;
          out->binary_ = n.op;
          child(n.a);
          child(n.b);
        } else if constexpr (std::is_same_v<T, ir::Select>) {
          out->eval_ = &LaneExpr::EvalSelect;
          child(n.condition);
          child(n.a);
          child(n.b);
        } else if constexpr (std::is_same_v<T, ir::Cast>) {
          out->eval_ = &LaneExpr::EvalCast;
          child(n.a);
        } else if constexpr (std::is_same_v<T, ir::Load>) {
          const Names::Binding& binding = names.Find(n.buffer);
          if (binding.kind == Names::Binding::Kind::kSlot)
            Fail("@", n.buffer, " is a value, not a buffer");
          out->eval_ = &LaneExpr::EvalLoad;
          out->accumulator_ = binding.kind == Names::Binding::Kind::kAccumulator;
          out->index_ = binding.index;
          if (n.indices.size() > kMaxRank) Fail("more than ", kMaxRank, " indices");
          for (const ir::Expr& index : n.indices) child(index);
          out->guard_ = Compile(n.guard, names, state);
          out->uniform_ = false;  // each lane's read is traced
        } else if constexpr (std::is_same_v<T, ir::Shuffle>) {
          out->eval_ = &LaneExpr::EvalShuffle;
          out->shuffle_ = n.kind;
          child(n.value);
          child(n.lane);
          out->uniform_ = false;  // the participation of each lane is checked
        }
      },
      e->node);
  if (out->eval_ != nullptr) out->result_.resize(out->uniform_ ? 1 : state.lanes);
  return out;
}

Values LaneExpr::Eval(LaneState& state, const Active& active) {
  if (slot_) return {state.slots[index_].data(), uniform_ ? 0 : 1};
  if (eval_ != nullptr) (this->*eval_)(state, uniform_ ? kOneLane : active);
  return {result_.data(), uniform_ ? 0 : 1};
}

void LaneExpr::EvalFloatUnary(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active);
  for (int lane : active)
    result_[lane].f = RoundResult(state.arithmetic, dtype_, ApplyFloat(unary_, a[lane].f));
}

void LaneExpr::EvalIntUnary(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active);
  for (int lane : active) result_[lane].i = ApplyInteger(unary_, a[lane].i);
}

void LaneExpr::EvalCompare(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active), b = children_[1]->Eval(state, active);
  for (int lane : active) result_[lane].i = ApplyFloat(binary_, a[lane].f, b[lane].f) != 0;
}

// The frequent operations have a loop of their own; the choice costs more than they do.
void LaneExpr::EvalFloatBinary(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active), b = children_[1]->Eval(state, active);
  auto each = [&](auto&& apply) {
    if (state.arithmetic == Arithmetic::kHardware && dtype_ == ir::DType::kF32) {
      for (int lane : active) result_[lane].f = static_cast<float>(apply(a[lane].f, b[lane].f));
    } else {
      for (int lane : active) {
        result_[lane].f = RoundResult(state.arithmetic, dtype_, apply(a[lane].f, b[lane].f));
      }
    }
  };
  switch (binary_) {
    case ir::BinaryOp::kAdd: return each([](double x, double y) { return x + y; });
    case ir::BinaryOp::kSub: return each([](double x, double y) { return x - y; });
    case ir::BinaryOp::kMul: return each([](double x, double y) { return x * y; });
    default: return each([&](double x, double y) { return ApplyFloat(binary_, x, y); });
  }
}

void LaneExpr::EvalIntBinary(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active), b = children_[1]->Eval(state, active);
  auto each = [&](auto&& apply) {
    for (int lane : active) result_[lane].i = apply(a[lane].i, b[lane].i);
  };
  auto any = [&](int64_t x, int64_t y) {
    auto value = ApplyInteger(binary_, x, y);
    if (!value) Fail(x, " ", ir::Name(binary_), " ", y, " is undefined");
    return *value;
  };
  // Indices are small and not negative; wrapping is left to ApplyInteger.
  constexpr int64_t kSmall = int64_t{1} << 31;
  auto small = [](int64_t x, int64_t y) { return x >= 0 && x < kSmall && y > 0 && y < kSmall; };
  switch (binary_) {
    case ir::BinaryOp::kAdd:
      return each([&](int64_t x, int64_t y) { return small(x, y) ? x + y : any(x, y); });
    case ir::BinaryOp::kMul:
      return each([&](int64_t x, int64_t y) { return small(x, y) ? x * y : any(x, y); });
    case ir::BinaryOp::kFloorDiv:
      return each([&](int64_t x, int64_t y) -> int64_t {
        return small(x, y) ? static_cast<uint32_t>(x) / static_cast<uint32_t>(y) : any(x, y);
      });
    case ir::BinaryOp::kMod:
      return each([&](int64_t x, int64_t y) -> int64_t {
        return small(x, y) ? static_cast<uint32_t>(x) % static_cast<uint32_t>(y) : any(x, y);
      });
    case ir::BinaryOp::kLt: return each([](int64_t x, int64_t y) { return x < y; });
    default: return each(any);
  }
}

// `b` is evaluated only where `a` does not decide, as in C.
void LaneExpr::EvalLogic(LaneState& state, const Active& active) {
  const bool decides = binary_ == ir::BinaryOp::kOr;
  Values a = children_[0]->Eval(state, active);
  Active rest;
  for (int lane : active) {
    result_[lane].i = a[lane].i != 0;
    if ((a[lane].i != 0) != decides) rest.push_back(lane);
  }
  if (rest.empty()) return;
  Values b = children_[1]->Eval(state, rest);
  for (int lane : rest) result_[lane].i = b[lane].i != 0;
}

void LaneExpr::EvalSelect(LaneState& state, const Active& active) {
  Values condition = children_[0]->Eval(state, active);
  Active sides[2];
  for (int lane : active) sides[condition[lane].i ? 0 : 1].push_back(lane);
  for (int side = 0; side < 2; ++side) {
    if (sides[side].empty()) continue;
    Values value = children_[1 + side]->Eval(state, sides[side]);
    for (int lane : sides[side]) result_[lane] = value[lane];
  }
}

void LaneExpr::EvalCast(LaneState& state, const Active& active) {
  Values a = children_[0]->Eval(state, active);
  const bool from_float = children_[0]->is_float_;
  for (int lane : active) {
    if (is_float_) {
      const double value = from_float ? a[lane].f : static_cast<double>(a[lane].i);
      result_[lane].f = RoundStored(state.arithmetic, dtype_, value);
    } else if (from_float) {
      result_[lane].i = ToInteger(dtype_, children_[0]->dtype_, a[lane].f);
    } else {
      result_[lane].i = dtype_ == ir::DType::kBool  ? a[lane].i != 0
                        : dtype_ == ir::DType::kI32 ? static_cast<int32_t>(a[lane].i)
                                                    : a[lane].i;
    }
  }
}

void LaneExpr::EvalLoad(LaneState& state, const Active& active) {
  if (guard_) {
    for (int lane : active) result_[lane] = is_float_ ? Cell{.f = 0} : Cell{.i = 0};
  }
  Active storage;
  const Active& reads = Filter(guard_.get(), state, active, storage);
  if (reads.empty()) return;
  Values values[kMaxRank];
  const size_t rank = children_.size();
  for (size_t i = 0; i < rank; ++i) values[i] = children_[i]->Eval(state, reads);
  int64_t indices[kMaxRank];
  if (!accumulator_) {
    LaneMemory& memory = state.memories[index_];
    for (int lane : reads) {
      for (size_t i = 0; i < rank; ++i) indices[i] = values[i][lane].i;
      result_[lane] = memory.Read(memory.Offset(indices, rank), state.At(lane));
    }
  } else {
    LaneAccumulator& acc = state.accumulators[index_];
    for (int lane : reads) {
      for (size_t i = 0; i < rank; ++i) indices[i] = values[i][lane].i;
      const double* s = acc.State(lane, acc.Offset(indices, rank));
      double value = s[0];
      if (acc.monoid == ir::Monoid::kSoftmaxSum) value = s[1] == 0 ? 0 : s[2] / s[1];
      if (acc.monoid == ir::Monoid::kLogSumExp && s[1] != 0)
        value += RoundResult(state.arithmetic, dtype_, std::log(s[1]));
      result_[lane].f = RoundResult(state.arithmetic, dtype_, value);
    }
  }
}

void LaneExpr::EvalShuffle(LaneState& state, const Active& active) {
  WholeWarps(active, "shuffle");
  Values value = children_[0]->Eval(state, active), by = children_[1]->Eval(state, active);
  for (int lane : active) {
    const int64_t own = lane % 32, k = by[lane].i;
    int64_t from = shuffle_ == ir::ShuffleKind::kXor    ? own ^ k
                   : shuffle_ == ir::ShuffleKind::kDown ? own + k
                                                        : k;
    if (shuffle_ == ir::ShuffleKind::kDown && from > 31) from = own;
    if (from < 0 || from > 31)
      Fail("shuffle of thread ", lane, " from lane ", from, " of its warp");
    result_[lane] = value[lane - static_cast<int>(own - from)];
  }
}

const Active& Filter(LaneExpr* condition, LaneState& state, const Active& active, Active& storage) {
  if (!condition) return active;
  Values value = condition->Eval(state, active);
  size_t i = 0;
  while (i < active.size() && value[active[i]].i) ++i;
  if (i == active.size()) return active;
  storage.assign(active.begin(), active.begin() + i);
  for (; i < active.size(); ++i) {
    if (value[active[i]].i) storage.push_back(active[i]);
  }
  return storage;
}

std::vector<int> WholeWarps(const Active& active, const char* what) {
  std::vector<int> warps;
  for (size_t i = 0; i < active.size(); i += 32) {
    const int first = active[i];
    if (first % 32 != 0 || i + 31 >= active.size() || active[i + 31] != first + 31) {
      Fail(what, " reached by only some threads of the warp of thread ", first);
    }
    warps.push_back(first);
  }
  return warps;
}

}  // namespace hackc::interp

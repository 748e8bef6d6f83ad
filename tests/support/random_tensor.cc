// SPDX-License-Identifier: MIT
#include "tests/support/random_tensor.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hackc::test {
namespace {

using ir::Expr;

// Grows a module operation by operation from values over the extents seq, 3, 4 and 6.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    module_.name = "random";
    module_.symbols = {{"seq", 1, 7}};
    module_.segments.resize(1);
    module_.segments[0].name = "s";
    Source("x", {Seq(), ir::IntLit(6)}, ir::SourceDecl::Kind::kInput);
    Source("z", {Seq(), ir::IntLit(4)}, ir::SourceDecl::Kind::kInput);
    Source("w", {ir::IntLit(3), ir::IntLit(6)}, ir::SourceDecl::Kind::kWeight);
    Source("v", {ir::IntLit(4), ir::IntLit(6)}, ir::SourceDecl::Kind::kWeight);
  }

  ir::TensorModule Make(int ops) {
    while (static_cast<int>(Ops().size()) < ops) Step();
    ir::TensorSegment& segment = module_.segments[0];
    for (size_t i = 0; i < Ops().size(); ++i) {
      if (i + 1 < Ops().size() && Pick(5) != 0) continue;
      segment.yields.push_back(Ops()[i].out);
      segment.results.push_back("out" + std::to_string(i));
    }
    module_.outputs = segment.results;
    return module_;
  }

 private:
  struct Value {
    std::string name;
    std::vector<Expr> shape;
  };

  static Expr Seq() { return ir::MakeSymbol("seq"); }
  int Pick(size_t n) { return static_cast<int>(random_() % n); }
  std::vector<ir::TensorOp>& Ops() { return module_.segments[0].ops; }

  void Source(const std::string& name, std::vector<Expr> shape, ir::SourceDecl::Kind kind) {
    ir::SourceDecl source{name, kind, {ir::DType::kF32, shape}};
    if (kind == ir::SourceDecl::Kind::kWeight) source.weight_name = name;
    module_.sources.push_back(std::move(source));
    values_.push_back({name, std::move(shape)});
  }

  void Emit(std::vector<ir::TensorAxis> axes, ir::TensorOpVariant op) {
    Value value{"t" + std::to_string(Ops().size()), {}};
    for (const ir::TensorAxis& axis : axes) value.shape.push_back(axis.extent);
    Ops().push_back(
        {value.name, {ir::DType::kF32, value.shape}, std::move(axes), std::move(op), value.name});
    values_.push_back(std::move(value));
  }

  static std::vector<ir::TensorAxis> AxesOf(const Value& value, const std::string& prefix = "i") {
    std::vector<ir::TensorAxis> axes;
    for (const Expr& extent : value.shape) {
      axes.push_back({prefix + std::to_string(axes.size()), extent});
    }
    return axes;
  }

  // A load of some value whose dims all find an axis of their extent, at shuffled and shifted
  // indices.
  Expr LoadOver(const std::vector<ir::TensorAxis>& axes) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Value& value = values_[Pick(values_.size())];
      std::vector<Expr> indices;
      for (const Expr& extent : value.shape) {
        std::vector<Expr> fitting;
        for (const ir::TensorAxis& axis : axes) {
          if (ir::Equal(axis.extent, extent)) fitting.push_back(ir::Axis(axis.name));
        }
        if (fitting.empty()) break;
        Expr index = fitting[Pick(fitting.size())];
        auto size = ir::AsInt(extent);
        if (size && Pick(3) == 0) index = ir::Mod(index + (1 + Pick(3)), *size);
        if (size && Pick(6) == 0) index = ir::IntLit(Pick(*size));
        indices.push_back(index);
      }
      if (indices.size() == value.shape.size()) {
        return ir::MakeLoad(value.name, ir::DType::kF32, indices, GuardOver(axes));
      }
    }
    return ir::FloatLit(0.75);
  }

  // Some loads read 0 in places.
  Expr GuardOver(const std::vector<ir::TensorAxis>& axes) {
    if (Pick(5) != 0) return nullptr;
    return ir::Lt(ir::Axis(axes[Pick(axes.size())].name), ir::IntLit(1 + Pick(3)));
  }

  Expr ValueOver(const std::vector<ir::TensorAxis>& axes, int depth) {
    if (depth == 0 || Pick(3) == 0) return LoadOver(axes);
    Expr a = ValueOver(axes, depth - 1);
    switch (Pick(6)) {
      case 0: return ir::MakeUnary(ir::UnaryOp::kTanh, a);
      case 1: return a * ir::FloatLit(0.5);
      case 2: return a + ValueOver(axes, depth - 1);
      case 3: return a * ValueOver(axes, depth - 1);
      case 4: return ir::MakeBinary(ir::BinaryOp::kMax, a, ValueOver(axes, depth - 1));
      default: {
        const ir::TensorAxis& axis = axes[Pick(axes.size())];
        Expr condition = ir::Lt(ir::Axis(axis.name), ir::IntLit(1 + Pick(3)));
        return ir::MakeSelect(condition, a, ValueOver(axes, depth - 1));
      }
    }
  }

  void Step() {
    const Value shape_of = values_[Pick(values_.size())];
    std::vector<ir::TensorAxis> axes = AxesOf(shape_of);
    switch (Pick(7)) {
      case 0:
      case 1:
      case 2: {
        if (axes.size() == 2 && Pick(3) == 0) std::swap(axes[0], axes[1]);
        return Emit(axes, ir::TensorMap{ValueOver(axes, 3)});
      }
      case 3: {  // over one axis, or all but one
        if (axes.size() < 2) return;
        std::swap(axes[Pick(axes.size())], axes.back());
        std::vector<ir::TensorAxis> kept(axes.begin(), axes.end() - 1), all = axes;
        auto monoid = Pick(2) ? ir::Monoid::kSum : ir::Monoid::kMax;
        return Emit(kept, ir::TensorReduce{monoid, {axes.back()}, {ValueOver(all, 2)}});
      }
      case 4: {
        std::vector<ir::TensorAxis> left = {axes[0], {"k", axes.back().extent}};
        std::vector<ir::TensorAxis> right = {{"n", ir::IntLit(3 + Pick(2))}, left[1]};
        return Emit({axes[0], right[0]},
                    ir::TensorContract{{left[1]}, LoadOver(left), LoadOver(right)});
      }
      case 5: {  // causal attention over seq
        std::vector<ir::TensorAxis> out = {{"s", Seq()}, {"e", ir::IntLit(Pick(2) ? 4 : 6)}};
        ir::TensorAxis t{"t", ir::Axis("s") + 1};
        std::vector<ir::TensorAxis> keys = {{"t", Seq()}};
        Expr score = LoadOver(keys) + LoadOver({{"s", Seq()}});
        return Emit(out, ir::TensorReduce{
                             ir::Monoid::kSoftmaxSum, {t}, {score, LoadOver({keys[0], out[1]})}});
      }
      default: {  // split or merge a dim
        if (shape_of.shape.size() == 2 && ir::AsInt(shape_of.shape[1]) == 6) {
          std::vector<ir::TensorAxis> out = {axes[0], {"h", ir::IntLit(2)}, {"d", ir::IntLit(3)}};
          Expr feature = ir::Axis("h") * 3 + ir::Axis("d");
          return Emit(
              out, ir::TensorView{ir::MakeLoad(shape_of.name, ir::DType::kF32,
                                               {ir::Axis(axes[0].name), feature}, GuardOver(out))});
        }
        if (shape_of.shape.size() == 3) {
          std::vector<ir::TensorAxis> out = {axes[0], {"c", ir::IntLit(6)}};
          int64_t inner = ir::AsInt(shape_of.shape[2]).value_or(1);
          Expr c = ir::Axis("c");
          return Emit(out, ir::TensorView{ir::MakeLoad(
                               shape_of.name, ir::DType::kF32,
                               {ir::Axis(axes[0].name), ir::FloorDiv(c, inner), ir::Mod(c, inner)},
                               GuardOver(out))});
        }
      }
    }
  }

  std::mt19937 random_;
  ir::TensorModule module_;
  std::vector<Value> values_;
};

}  // namespace

ir::TensorModule RandomTensorModule(unsigned seed, int ops) { return Generator(seed).Make(ops); }

}  // namespace hackc::test

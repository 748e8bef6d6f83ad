// SPDX-License-Identifier: MIT
#include "compiler/program/program_builder.h"

#include <functional>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/program/constant_bytes.h"
#include "compiler/program/dim_expr.h"
#include "compiler/program/kernel_contract.h"
#include "compiler/program/traffic.h"
#include "compiler/support/internal_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/program/module_builder.h"

namespace hackc::program {
namespace {

using ir::SourceDecl;
using testing::ElementsAre;
using testing::HasSubstr;

// One line for a launch or repetition: "norm x w -> h" with the buffers' names.
std::string Show(const Program& program, const std::vector<Step>& steps, int indent = 0) {
  std::string text;
  for (const Step& step : steps) {
    text.append(static_cast<size_t>(indent), ' ');
    if (step.repeat_count > 0) {
      absl::StrAppend(&text, "repeat ", step.repeat_count, "\n",
                      Show(program, step.steps, indent + 2));
      continue;
    }
    absl::StrAppend(&text, program.kernels[step.launch.kernel].name);
    for (const BufferRef& ref : step.launch.args)
      absl::StrAppend(&text, " ", program.buffers[ref.buffer].name);
    text += "\n";
  }
  return text;
}

const Buffer& Find(const Program& program, const std::string& name) {
  for (const Buffer& buffer : program.buffers) {
    if (buffer.name == name) return buffer;
  }
  throw InternalError("no buffer " + name);
}

// Two layers' kinds of work: projections joined from weights, a residual, a head.
ir::LoopModule Model(int layers) {
  ir::LoopModule module;
  module.name = "model";
  module.symbols = {{"seq", 1, 64}};
  module.sources = {Source(SourceDecl::Kind::kInput, "ids", Rows(1)),
                    Source(SourceDecl::Kind::kWeight, "table", Static(96, 8), "embed.weight")};
  ir::LoopSegment first;
  first.name = "first";
  first.ops = {Launch("embed", {{"ids", Rows(1)}, {"table", Static(96, 8)}}, {{"x0", Rows(8)}})};
  first.yields = {"x0"};
  first.results = {"embedded"};
  ir::LoopSegment body;
  body.name = "layers";
  body.count = layers;
  body.carries = {{"x", "embedded"}};
  body.sources = {Source(SourceDecl::Kind::kWeight, "wq", Static(8, 8), "layers.{layer}.q"),
                  Source(SourceDecl::Kind::kWeight, "wk", Static(8, 8), "layers.{layer}.k")};
  body.ops = {
      Launch("join", {{"wq", Static(8, 8)}, {"wk", Static(8, 8)}}, {{"wqk", Static(16, 8)}}),
      Launch("transpose", {{"table", Static(96, 8)}}, {{"turned", Static(8, 96)}}),
      Launch("linear", {{"x", Rows(8)}, {"wqk", Static(16, 8)}}, {{"qk", Rows(16)}}),
      Launch("mix", {{"x", Rows(8)}, {"qk", Rows(16)}}, {{"a", Rows(8)}}),
      Launch("linear", {{"a", Rows(8)}, {"wqk", Static(16, 8)}}, {{"h", Rows(16)}}),
      Launch("down", {{"a", Rows(8)}, {"h", Rows(16)}, {"turned", Static(8, 96)}},
             {{"b", Rows(8)}})};
  body.yields = {"b"};
  body.results = {"hidden"};
  ir::LoopSegment last;
  last.name = "last";
  last.ops = {
      Launch("transpose", {{"table", Static(96, 8)}}, {{"turned2", Static(8, 96)}}),
      Launch("head", {{"hidden", Rows(8)}, {"turned2", Static(8, 96)}}, {{"scores", Rows(96)}})};
  last.yields = {"scores"};
  last.results = {"logits"};
  module.segments = {first, body, last};
  module.outputs = {"logits"};
  return module;
}

TEST(ProgramBuilder, LaunchesRepeatPreparedWeightsAreMadeOnceAndTheResidualStaysInPlace) {
  ProgramPlan plan = PrefillProgram(Model(28));
  const Program& program = plan.program;
  EXPECT_EQ(Show(program, program.prepare),
            "transpose table turned\n"
            "repeat 28\n"
            "  join wq wk wqk\n");
  ASSERT_EQ(program.entry_points.size(), 1u);
  const EntryPoint& entry = program.entry_points[0];
  EXPECT_EQ(entry.name, "prefill");
  EXPECT_EQ(Show(program, entry.steps),
            "embed ids table x0\n"
            "repeat 28\n"
            "  linear x0 wqk qk\n"
            "  mix x0 qk a\n"
            "  linear a wqk h\n"
            "  down a h turned x0\n"
            "head x0 turned logits\n");
  // qk is dead when h is made.
  EXPECT_EQ(Find(program, "qk").offset, Find(program, "h").offset);
  EXPECT_NE(Find(program, "a").offset, Find(program, "h").offset);
}

// The same module for other numbers of rows.
ir::LoopModule ForRows(ir::LoopModule module, int64_t min, int64_t max) {
  module.symbols = {{"seq", min, max}};
  for (ir::LoopSegment& segment : module.segments) {
    for (ir::LoopLaunch& launch : segment.ops) launch.fn.fn.symbols = module.symbols;
  }
  return module;
}

TEST(ProgramBuilder, EntryPointsShareWeightsAndWhatIsPreparedAndSpecialiseTheRest) {
  const ir::LoopModule many = ForRows(Model(28), 2, 64), one = ForRows(Model(28), 1, 1);
  ProgramPlan plan = BuildProgram({{"prefill", many}, {"decode", one}}, "sm_90a");
  const Program& program = plan.program;
  EXPECT_EQ(Show(program, program.prepare),
            "transpose table turned\n"
            "repeat 28\n"
            "  join wq wk wqk\n");
  ASSERT_EQ(program.entry_points.size(), 2u);
  EXPECT_EQ(program.entry_points[0].name, "prefill");
  EXPECT_EQ(program.entry_points[1].name, "decode");
  EXPECT_EQ(Show(program, program.entry_points[1].steps),
            "embed_decode ids table x0\n"
            "repeat 28\n"
            "  linear_decode x0 wqk qk\n"
            "  mix_decode x0 qk a\n"
            "  linear_decode a wqk h\n"
            "  down_decode a h turned x0\n"
            "head_decode x0 turned logits\n");
  EXPECT_EQ(program.entry_points[0].inputs, program.entry_points[1].inputs);
  EXPECT_EQ(program.entry_points[0].outputs, program.entry_points[1].outputs);
  EXPECT_THAT(program.symbols, ElementsAre(Symbol{"seq", 1, 64}));
  EXPECT_THAT(program.entry_points[0].symbols, ElementsAre(Symbol{"seq", 2, 64}));
  EXPECT_THAT(program.entry_points[1].symbols, ElementsAre(Symbol{"seq", 1, 1}));
  EXPECT_EQ(plan.loops.size(), program.kernels.size());
  EXPECT_EQ(program.kernels.size(), 2u + 2 * 5);
  std::map<std::string, int> weights;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind != Buffer::Kind::kWorkspace) ++weights[buffer.name];
  }
  for (const auto& [name, count] : weights) EXPECT_EQ(count, 1) << name;
}

TEST(ProgramBuilder, EqualEntryPointsAddNoKernel) {
  const ir::LoopModule module = Model(3);
  ProgramPlan both = BuildProgram({{"prefill", module}, {"decode", module}}, "sm_90a");
  EXPECT_EQ(both.loops.size(), PrefillProgram(module).loops.size());
}

TEST(ProgramBuilder, EntryPointsThatDisagreeAboutAnInputAreRefused) {
  const ir::LoopModule module = Model(2);
  ir::LoopModule other = module;
  other.sources[0].type.dtype = ir::DType::kF16;
  EXPECT_THROW(BuildProgram({{"prefill", module}, {"decode", other}}, "sm_90a"), InternalError);
}

TEST(ProgramBuilder, BuffersCarryTheirContract) {
  const Program program = PrefillProgram(Model(28)).program;
  for (size_t i = 0; i < program.buffers.size(); ++i) EXPECT_EQ(program.buffers[i].id, i);
  const Buffer& wq = Find(program, "wq");
  EXPECT_EQ(wq.kind, Buffer::Kind::kWeight);
  EXPECT_EQ(wq.weight_name, "layers.{layer}.q");
  EXPECT_EQ(wq.repeat_count, 28u);
  EXPECT_EQ(wq.first_layer, 0u);
  EXPECT_EQ(wq.layer_step, 1u);
  const Buffer& joined = Find(program, "wqk");
  EXPECT_EQ(joined.kind, Buffer::Kind::kPrepared);
  EXPECT_EQ(joined.repeat_count, 28u);
  EXPECT_EQ(Find(program, "turned").repeat_count, 0u);
  EXPECT_EQ(Find(program, "table").weight_name, "embed.weight");
  EXPECT_EQ(Find(program, "logits").kind, Buffer::Kind::kOutput);
  EXPECT_EQ(Find(program, "ids").kind, Buffer::Kind::kInput);
  const EntryPoint& entry = program.entry_points[0];
  EXPECT_THAT(entry.inputs, ElementsAre(Find(program, "ids").id));
  EXPECT_THAT(entry.outputs, ElementsAre(Find(program, "logits").id));
  EXPECT_EQ(Evaluate(Find(program, "x0").shape[0], {{"seq", 5}}), 5);
}

TEST(ProgramBuilder, TheWorkspaceFitsEveryLength) {
  const Program program = PrefillProgram(Model(28)).program;
  // x0 and a: 32 bytes a row each; qk: 64; rounded up to 256 each.
  for (int64_t seq : {1, 8, 9, 64}) {
    auto round = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
    EXPECT_EQ(Evaluate(program.entry_points[0].workspace_bytes, {{"seq", seq}}),
              2 * round(32 * seq) + 2 * round(64 * seq) - (round(64 * seq)));
  }
}

TEST(ProgramBuilder, DepthChangesCountsAndNothingElse) {
  ProgramPlan few = PrefillProgram(Model(28)), many = PrefillProgram(Model(80));
  ASSERT_EQ(few.loops.size(), many.loops.size());
  EXPECT_EQ(few.program.buffers.size(), many.program.buffers.size());
  for (size_t i = 0; i < few.loops.size(); ++i)
    EXPECT_EQ(few.program.kernels[i].name, many.program.kernels[i].name);
  EXPECT_EQ(Find(many.program, "wq").repeat_count, 80u);
}

TEST(ProgramBuilder, KernelsAreSharedByTextAndNamedApart) {
  ir::LoopModule module = Model(2);
  // The same name for another operation, and another name for the same operation.
  module.segments[0].ops.push_back(
      Launch("linear", {{"embedded0", Rows(8)}}, {{"other", Rows(8)}}));
  module.segments[0].ops[1].args[0] = "x0";
  ir::LoopLaunch renamed = module.segments[1].ops[3];
  renamed.fn.fn.name = "mix_again";
  renamed.fn.fn.computes = "another purpose";
  renamed.args = {"a", "h", "b2"};
  renamed.results = {{"b2", Rows(8)}};
  module.segments[1].ops.push_back(renamed);
  ProgramPlan plan = PrefillProgram(module);
  std::vector<std::string> names;
  for (const Kernel& kernel : plan.program.kernels) names.push_back(kernel.name);
  EXPECT_THAT(names, ElementsAre("transpose", "join", "embed", "linear", "linear_2", "mix", "down",
                                 "head"));
  // What the kernels compute is named without regard to others: see the next test.
  EXPECT_EQ(plan.loops[4].fn.name, "linear");
}

// Entry names come from the loops': equal text of two ranges is then one cubin.
TEST(ProgramBuilder, AKernelOfAnotherRangeHasTheSameLoopsButForTheRange) {
  const ir::LoopModule few = ForRows(Model(2), 1, 16), many = ForRows(Model(2), 17, 64);
  const ProgramPlan plan = BuildProgram({{"prefill", few}, {"prefill", many}}, "sm_90a");
  std::map<std::string, std::vector<std::string>> named;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    named[plan.loops[i].fn.name].push_back(plan.program.kernels[i].name);
  }
  EXPECT_THAT(named.at("mix"), ElementsAre("mix", "mix_prefill"));
  EXPECT_THAT(named.at("down"), ElementsAre("down", "down_prefill"));
}

TEST(ProgramBuilder, ASegmentThatRunsOnceNamesItsLayer) {
  const Program program = PrefillProgram(Model(1)).program;
  EXPECT_EQ(Find(program, "wq").weight_name, "layers.0.q");
  EXPECT_EQ(Find(program, "wq").repeat_count, 0u);
}

TEST(ProgramBuilder, PeriodsOfLayersStepOverTheirWeights) {
  ir::LoopModule module = Model(14);
  module.segments[1].layer_step = 2;
  module.segments[1].first_layer = 4;
  module.segments[1].sources[1].weight_name = "layers.{layer+1}.k";
  const Program program = PrefillProgram(module).program;
  EXPECT_EQ(Find(program, "wq").first_layer, 4u);
  EXPECT_EQ(Find(program, "wk").weight_name, "layers.{layer}.k");
  EXPECT_EQ(Find(program, "wk").first_layer, 5u);
  EXPECT_EQ(Find(program, "wk").layer_step, 2u);
}

TEST(ProgramBuilder, AParallelResidualIsCopiedAtTheEndOfAnIteration) {
  ir::LoopModule module = Model(3);
  module.segments[1].ops[5].args[0] = "x";  // the last kernel still reads the carry
  const Program program = PrefillProgram(module).program;
  EXPECT_THAT(Show(program, program.entry_points[0].steps),
              HasSubstr("  down x0 h turned b\n  copy b x0\nhead x0"));
}

TEST(ProgramBuilder, AnInputThatIsReturnedIsCopied) {
  ir::LoopModule module = Model(2);
  module.outputs = {"logits", "ids"};
  const Program program = PrefillProgram(module).program;
  const EntryPoint& entry = program.entry_points[0];
  ASSERT_EQ(entry.outputs.size(), 2u);
  EXPECT_EQ(program.buffers[entry.outputs[1]].kind, Buffer::Kind::kOutput);
  EXPECT_NE(entry.outputs[1], entry.inputs[0]);
  EXPECT_THAT(Show(program, entry.steps), HasSubstr("copy ids ids\n"));
}

TEST(ProgramBuilder, StatesAreUpdatedInPlace) {
  ir::LoopModule module = Model(2);
  module.segments[1].sources.push_back(
      Source(SourceDecl::Kind::kState, "cache", Static(64, 8), "layers.{layer}.cache"));
  ir::LoopLaunch append = Launch("append", {{"a", Rows(8)}}, {{"cache", Static(64, 8)}});
  append.results.clear();
  append.fn.fn.buffers[1].access = ir::Access::kReadWrite;
  module.segments[1].ops.push_back(append);
  const Program program = PrefillProgram(module).program;
  const Buffer& cache = Find(program, "cache");
  EXPECT_EQ(cache.kind, Buffer::Kind::kState);
  EXPECT_EQ(cache.repeat_count, 2u);
  EXPECT_EQ(cache.weight_name, "layers.{layer}.cache");
}

TEST(ProgramBuilder, ContradictionsAreRefused) {
  auto refused = [](const std::function<void(ir::LoopModule&)>& spoil, const std::string& message) {
    ir::LoopModule module = Model(2);
    spoil(module);
    try {
      PrefillProgram(module);
      ADD_FAILURE() << "accepted: " << message;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  };
  refused([](auto& m) { m.outputs = {"nothing"}; }, "value %nothing is not defined before its use");
  refused([](auto& m) { m.segments[2].results = {"ids"}; }, "value %ids is defined twice");
  refused([](auto& m) { m.segments[1].ops[2].args[2] = "embedded"; },
          "launch of linear: %embedded is bound to @y0");
  refused(
      [](auto& m) {
        m.segments[1].sources.push_back(Source(SourceDecl::Kind::kState, "cache", Rows(8)));
        m.segments[1].ops[2].args = {"cache", "wqk", "cache"};
        m.segments[1].ops[2].results.clear();
      },
      "launch of linear writes %cache and names it twice");
  refused([](auto& m) { m.segments[1].sources[0].weight_name = "layers.{layer+1}.q"; },
          "weight name layers.{layer+1}.q");
}

TEST(DimExpr, FoldsAndCompares) {
  DimExpr seq = FromExpr(ir::MakeSymbol("seq"));
  EXPECT_EQ(Add(Constant(3), Constant(4)), Constant(7));
  EXPECT_EQ(Mul(Mul(seq, Constant(3)), Constant(4)), Mul(seq, Constant(12)));
  EXPECT_EQ(Mul(Constant(2), Mul(seq, FromExpr(ir::MakeSymbol("batch")))),
            Mul(Mul(seq, Constant(2)), FromExpr(ir::MakeSymbol("batch"))));
  EXPECT_EQ(Max(Mul(seq, Constant(4)), Mul(seq, Constant(6))), Mul(seq, Constant(6)));
  EXPECT_EQ(Min(seq, Mul(seq, Constant(6))), seq);
  EXPECT_EQ(Max(seq, Constant(5)).op, DimExpr::Op::kMax);
  EXPECT_EQ(Max(Constant(0), seq), seq);
  EXPECT_EQ(Min(seq, Constant(0)), Constant(0));
  EXPECT_EQ(RoundUp(Mul(seq, Constant(512)), 256), Mul(seq, Constant(512)));
  for (int64_t n = 0; n < 600; ++n) {
    EXPECT_EQ(Evaluate(RoundUp(Mul(seq, Constant(3)), 256), {{"seq", n}}),
              (3 * n + 255) / 256 * 256);
  }
}

// Workspaces and traffic are sums of, and chosen from, many sizes that are mostly the same.
TEST(DimExpr, SumsAndChoicesHoldTheSameOnce) {
  const DimExpr batch = FromExpr(ir::MakeSymbol("batch")), seq = FromExpr(ir::MakeSymbol("seq"));
  const DimExpr most = Max(Max(seq, batch), Constant(5)), least = Min(seq, Mul(batch, Constant(3)));
  EXPECT_EQ(Max(most, seq), most);
  EXPECT_EQ(Max(Constant(4), most), most);
  EXPECT_EQ(Max(most, Mul(seq, Constant(2))).args[1], Mul(seq, Constant(2)));
  EXPECT_EQ(Min(least, Mul(batch, Constant(4))), least);
  EXPECT_NE(Min(least, batch), least);
  EXPECT_EQ(Add(Add(Mul(seq, Constant(4)), batch), Mul(seq, Constant(2))),
            Add(Mul(seq, Constant(6)), batch));
  EXPECT_EQ(Add(Add(seq, batch), Mul(seq, Constant(-1))), batch);
  std::mt19937 random(7);
  const std::vector<DimExpr> leaves = {
      batch,       seq,         Mul(batch, Constant(2)), Mul(seq, Constant(3)),
      Constant(0), Constant(5), Add(batch, seq)};
  for (int round = 0; round < 300; ++round) {
    DimExpr chosen = leaves[random() % leaves.size()];
    std::vector<DimExpr> plain = {chosen};  // the same with no choice decided
    for (int i = 0; i < 6; ++i) {
      const DimExpr& leaf = leaves[random() % leaves.size()];
      const unsigned pick = random() % 3;
      chosen = pick == 0   ? Max(std::move(chosen), leaf)
               : pick == 1 ? Min(leaf, std::move(chosen))
                           : Add(std::move(chosen), leaf);
      const auto op = pick == 0   ? DimExpr::Op::kMax
                      : pick == 1 ? DimExpr::Op::kMin
                                  : DimExpr::Op::kAdd;
      plain.push_back({.op = op, .args = {plain.back(), leaf}});
    }
    for (int64_t b = 0; b < 8; ++b) {
      for (int64_t n = 0; n < 8; ++n) {
        const std::map<std::string, int64_t> symbols = {{"batch", b}, {"seq", n}};
        ASSERT_EQ(Evaluate(chosen, symbols), Evaluate(plain.back(), symbols)) << round;
      }
    }
  }
}

TEST(DimExpr, EvaluatesLikeTheIr) {
  ir::Expr a = ir::MakeSymbol("a"), b = ir::MakeSymbol("b");
  for (int64_t x = -7; x <= 7; ++x) {
    for (int64_t y = -3; y <= 3; ++y) {
      auto check = [&](const ir::Expr& e) {
        // The makers of the IR fold literals exactly: they are the oracle.
        ir::Expr folded = ir::Rewrite(e, [&](const ir::Expr& node) -> ir::Expr {
          const auto* symbol = ir::As<ir::Symbol>(node);
          return symbol == nullptr ? nullptr : ir::IntLit(symbol->name == "a" ? x : y);
        });
        if (!ir::AsInt(folded)) return;
        EXPECT_EQ(Evaluate(FromExpr(e), {{"a", x}, {"b", y}}), *ir::AsInt(folded))
            << ir::Print(e) << " " << x << " " << y;
      };
      check(a + b);
      check(a - b * 2);
      check(ir::FloorDiv(a, b));
      check(ir::Mod(a, b));
      check(ir::Min(a, b));
      check(ir::Max(a, b + 1));
      check(ir::CeilDiv(a * b, 4));
    }
  }
  EXPECT_THROW(FromExpr(ir::Axis("m")), InternalError);
  EXPECT_EQ(Evaluate(FromExpr(ir::FloorDiv(a, b)), {{"a", 3}}),
            0);  // a client's division by zero is no crash
}

TEST(ConstantBytes, RoundOnceToNearestEven) {
  auto half = [](double value, ir::DType dtype) {
    std::string bytes = ConstantBytes({value}, dtype);
    return static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
  };
  using ir::DType;
  EXPECT_EQ(half(1.0, DType::kBF16), 0x3f80);
  EXPECT_EQ(half(-2.5, DType::kBF16), 0xc020);
  EXPECT_EQ(half(1.00390625, DType::kBF16), 0x3f80);          // a tie goes to even
  EXPECT_EQ(half(1.00390625 + 1e-12, DType::kBF16), 0x3f81);  // float32 first would make it a tie
  EXPECT_EQ(half(3.4e38, DType::kBF16), 0x7f80);
  EXPECT_EQ(half(1e-40, DType::kBF16), 0x0001);  // subnormal
  EXPECT_EQ(half(1.0, DType::kF16), 0x3c00);
  EXPECT_EQ(half(65504, DType::kF16), 0x7bff);
  EXPECT_EQ(half(65520, DType::kF16), 0x7c00);
  EXPECT_EQ(half(5.9604644775390625e-8, DType::kF16), 0x0001);
  EXPECT_EQ(half(2.98e-8, DType::kF16), 0x0000);
  EXPECT_EQ(half(0.00006097555160522461, DType::kF16), 0x03ff);
  EXPECT_EQ(half(0.000061005353927612305, DType::kF16), 0x0400);  // a tie between the two kinds
  EXPECT_EQ(half(2047.5, DType::kF16), 0x6800);                   // the carry reaches the exponent
  EXPECT_EQ(half(-0.0, DType::kF16), 0x8000);
  EXPECT_EQ(half(-std::numeric_limits<double>::infinity(), DType::kF16), 0xfc00);
  EXPECT_EQ(half(std::numeric_limits<double>::quiet_NaN(), DType::kBF16), 0x7fc0);
  EXPECT_EQ(ConstantBytes({1, 258}, DType::kI32), std::string("\1\0\0\0\2\1\0\0", 8));
  EXPECT_EQ(ConstantBytes({0, 3}, DType::kBool), std::string("\0\1", 2));
  EXPECT_EQ(ConstantBytes({0.1}, DType::kF32), std::string("\xcd\xcc\xcc\x3d"));
}

// y[m, n] = sum_k x[m, k] * w[n, k], causal over k when `causal`.
ir::LoopFn Product(bool causal) {
  ir::Expr m = ir::Axis("m"), n = ir::Axis("n"), k = ir::Axis("k"), seq = ir::MakeSymbol("seq");
  auto load = [](const char* name, ir::Expr i, ir::Expr j) {
    return ir::MakeCast(ir::DType::kF32,
                        ir::MakeLoad(name, ir::DType::kBF16, {std::move(i), std::move(j)}));
  };
  ir::Block inner = {
      ir::MakeStmt(ir::Accumulate{"sum", {}, {load("x", m, k) * load("w", n, k)}, nullptr})};
  ir::Block per_n = {
      ir::MakeStmt(ir::Accumulator{"sum"}),
      ir::MakeStmt(ir::For{.axis = "k", .extent = causal ? m + 1 : ir::IntLit(64), .body = inner}),
      ir::MakeStmt(ir::Store{
          "y", {m, n}, ir::MakeCast(ir::DType::kBF16, ir::MakeVar("sum", ir::DType::kF32))})};
  ir::LoopFn loop;
  loop.fn = {
      "product",
      "a product",
      {{"seq", 1, 64}},
      {{"x", ir::DType::kBF16, {seq, ir::IntLit(64)}, ir::Access::kRead},
       {"w", ir::DType::kBF16, {ir::IntLit(32), ir::IntLit(64)}, ir::Access::kRead},
       {"y", ir::DType::kBF16, {seq, ir::IntLit(32)}, ir::Access::kWrite}},
      {ir::MakeStmt(ir::For{
          .axis = "m",
          .extent = seq,
          .body = {ir::MakeStmt(ir::For{.axis = "n", .extent = ir::IntLit(32), .body = per_n})}})}};
  return loop;
}

TEST(Traffic, CountsBytesOnceAndOperationsOfEveryIteration) {
  Traffic traffic = TrafficOf(Product(false));
  for (int64_t seq : {1, 7, 64}) {
    EXPECT_EQ(Evaluate(traffic.bytes_moved, {{"seq", seq}}), 2 * (seq * 64 + 32 * 64 + seq * 32));
    EXPECT_EQ(Evaluate(traffic.operations, {{"seq", seq}}), 2 * seq * 32 * 64);
  }
  // A causal loop counts its mean length, exact for odd lengths.
  EXPECT_EQ(Evaluate(TrafficOf(Product(true)).operations, {{"seq", 7}}), 2 * 32 * (7 * 8 / 2));
}

TEST(Traffic, AGatherReadsRowsNotTheTable) {
  ir::Expr s = ir::Axis("s"), c = ir::Axis("c"), seq = ir::MakeSymbol("seq");
  ir::Expr row = ir::MakeLoad("ids", ir::DType::kI32, {s});
  ir::LoopFn loop;
  loop.fn = {
      "gather",
      "",
      {{"seq", 1, 64}},
      {{"ids", ir::DType::kI32, {seq}, ir::Access::kRead},
       {"table", ir::DType::kF32, {ir::IntLit(1000), ir::IntLit(8)}, ir::Access::kRead},
       {"y", ir::DType::kF32, {seq, ir::IntLit(8)}, ir::Access::kWrite}},
      {ir::MakeStmt(ir::For{
          .axis = "s",
          .extent = seq,
          .body = {ir::MakeStmt(ir::Let{"r", row}),
                   ir::MakeStmt(ir::For{
                       .axis = "c",
                       .extent = ir::IntLit(8),
                       .body = {ir::MakeStmt(
                           ir::Store{"y",
                                     {s, c},
                                     ir::MakeLoad("table", ir::DType::kF32,
                                                  {ir::MakeVar("r", ir::DType::kI32), c})})}})}})}};
  EXPECT_EQ(Evaluate(TrafficOf(loop).bytes_moved, {{"seq", 10}}), 4 * 10 + 2 * 4 * 80);
}

TEST(Traffic, OfAWindowTheKeysAreReadNotTheCache) {
  auto loop = ir::ParseLoop(R"(hackc loop 1
fn window "keys of a window" {
  symbol past in 0..32768
  read @x0: i32[1]
  read @state0: f32[33000, 8]
  write @y: f32[8]
  for %e: free in 8 {
    acc %sum: sum
    for %t: reduce in ((min(max(@x0[0], 0), past) + 1) - max((min(max(@x0[0], 0), past) - 4095), 0)) {
      %sum <- @state0[(max((min(max(@x0[0], 0), past) - 4095), 0) + %t), %e]
    }
    @y[%e] = %sum
  }
}
)");
  ASSERT_TRUE(loop.ok()) << loop.status();
  const Traffic traffic = TrafficOf(*loop);
  for (const auto& [past, keys] : {std::pair{10, 11}, {4095, 4096}, {32768, 4096}})
    EXPECT_EQ(Evaluate(traffic.bytes_moved, {{"past", past}}), 4 + (keys + 1) * 8 * 4) << past;
}

TEST(Traffic, OfAPromptOverAWindowTheKeysOfItsRows) {
  auto loop = ir::ParseLoop(R"(hackc loop 1
fn window "a prompt over a window" {
  symbol seq in 1..4096
  symbol past in 0..32768
  read @x0: i32[1]
  read @state0: f32[40000, 8]
  write @y: f32[seq, 8]
  for %s: free in seq {
    acc %softmax: softmax_sum[8]
    for %t: reduce in ((min(max(@x0[0], 0), past) + %s) + 1) {
      let %v = select((((min(max(@x0[0], 0), past) + %s) - %t) < 5), @state0[%t, 0], -inf)
      for %e: free in 8 {
        %softmax[%e] <- %v, @state0[%t, %e]
      }
    }
    for %e: free in 8 {
      @y[%s, %e] = @softmax[%e]
    }
  }
}
)");
  ASSERT_TRUE(loop.ok()) << loop.status();
  const Traffic traffic = TrafficOf(*loop);
  for (int64_t past : {0, 3, 30000}) {
    for (int64_t seq : {1, 2, 101}) {
      SCOPED_TRACE(testing::Message() << "past " << past << ", seq " << seq);
      const int64_t first = std::max<int64_t>(past - 4, 0);
      EXPECT_EQ(Evaluate(traffic.bytes_moved, {{"past", past}, {"seq", seq}}),
                4 + (past + seq - first) * 8 * 4 + seq * 8 * 4);
      // The keys of the middle row, two for each column.
      const int64_t keys = std::min<int64_t>(past + (seq - 1) / 2 + 1, 5);
      EXPECT_EQ(Evaluate(traffic.operations, {{"past", past}, {"seq", seq}}), seq * keys * 8 * 2);
    }
  }
}

// What split_reductions makes of attention: parts behind the last key are empty.
TEST(Traffic, PartsOfAnAxisCountTogether) {
  auto loop = ir::ParseLoop(R"(hackc loop 1
fn parts "a sum in parts" {
  symbol past in 0..2047
  read @x0: i32[1]
  read @state0: f32[4096, 8]
  write @y: f32[33, 8]
  for %part: free in 33 {
    acc %sum: sum[8]
    for %t: reduce in max(min(64, ((min(max(@x0[0], 0), past) + 1) - (%part * 64))), 0) {
      for %e: free in 8 {
        %sum[%e] <- @state0[((%part * 64) + %t), %e]
      }
    }
    for %e: free in 8 {
      @y[%part, %e] = @sum[%e]
    }
  }
}
)");
  ASSERT_TRUE(loop.ok()) << loop.status();
  const Traffic traffic = TrafficOf(*loop);
  for (int64_t past : {0, 62, 63, 64, 1023, 2047}) {
    SCOPED_TRACE(past);
    EXPECT_EQ(Evaluate(traffic.bytes_moved, {{"past", past}}), 4 + ((past + 1) + 33) * 8 * 4);
    EXPECT_EQ(Evaluate(traffic.operations, {{"past", past}}), (past + 1) * 8);
  }
}

// The same of a prompt over a window: keys before it, in whichever part they are, do not count.
TEST(Traffic, PartsBeforeAWindowDoNotCount) {
  auto loop = ir::ParseLoop(R"(hackc loop 1
fn parts "a prompt over a window, in parts" {
  symbol past in 0..2000
  read @x0: i32[1]
  read @state0: f32[4096, 8]
  write @parts: f32[3, 33, 8]
  for %s: free in 3 {
    for %part: free in 33 {
      acc %softmax: softmax_sum[8]
      for %t: reduce in max(min(64, (((min(max(@x0[0], 0), past) + %s) + 1) - (%part * 64))), 0) {
        let %v = select((((min(max(@x0[0], 0), past) + %s) - ((%part * 64) + %t)) < 5), @state0[((%part * 64) + %t), 0], -inf)
        for %e: free in 8 {
          %softmax[%e] <- %v, @state0[((%part * 64) + %t), %e]
        }
      }
      for %e: free in 8 {
        @parts[%s, %part, %e] = @softmax[%e]
      }
    }
  }
}
)");
  ASSERT_TRUE(loop.ok()) << loop.status();
  const Traffic traffic = TrafficOf(*loop);
  for (int64_t past : {0, 3, 63, 1000, 2000}) {
    SCOPED_TRACE(past);
    const int64_t first = std::max<int64_t>(past - 4, 0);
    EXPECT_EQ(Evaluate(traffic.bytes_moved, {{"past", past}}),
              4 + ((past + 3 - first) + 3 * 33) * 8 * 4);
    EXPECT_EQ(Evaluate(traffic.operations, {{"past", past}}),
              3 * std::min<int64_t>(past + 2, 5) * 8 * 2);
  }
}

TEST(KernelContract, SaysEverythingALaunchNeeds) {
  ir::KernelFn kernel;
  kernel.fn = Product(false).fn;
  ir::Stmt tile = ir::MakeStmt(ir::Alloc{.name = "t",
                                         .dtype = ir::DType::kBF16,
                                         .space = ir::MemorySpace::kShared,
                                         .extents = {64, 32},
                                         .padding = 8});
  ir::Stmt registers =
      ir::MakeStmt(ir::Alloc{.name = "r", .dtype = ir::DType::kBF16, .extents = {8}});
  kernel.fn.body = {
      tile, registers,
      ir::MakeStmt(ir::VectorLoad{
          "r", ir::IntLit(0), "x", ir::DType::kBF16, {ir::IntLit(0), ir::IntLit(0)}, 8}),
      ir::MakeStmt(ir::AsyncCopy{
          "t", {ir::IntLit(0), ir::IntLit(0)}, "w", {ir::IntLit(0), ir::IntLit(0)}, 8})};
  kernel.grid = {ir::CeilDiv(ir::MakeSymbol("seq"), 16), ir::IntLit(4), ir::IntLit(1)};
  kernel.threads = 256;
  Kernel contract = MakeContract(Product(false), kernel, "hackc_product", "sm_90a");
  EXPECT_EQ(contract.entry, "hackc_product");
  EXPECT_EQ(contract.arch, "sm_90a");
  EXPECT_EQ(contract.computes, "a product");
  EXPECT_THAT(contract.block, ElementsAre(256u, 1u, 1u));
  EXPECT_THAT(contract.cluster, ElementsAre(1u, 1u, 1u));
  EXPECT_EQ(Evaluate(contract.grid[0], {{"seq", 33}}), 3);
  EXPECT_EQ(Evaluate(contract.grid[1], {}), 4);
  EXPECT_EQ(contract.dynamic_shared_bytes, 64u * 40 * 2);
  std::vector<std::string> params;
  for (const Param& param : contract.params) {
    params.push_back(absl::StrCat(param.name, "@", param.offset, "+", param.size, " align ",
                                  param.alignment, param.written ? " written" : ""));
  }
  EXPECT_THAT(params, ElementsAre("x@0+8 align 16", "w@8+8 align 8", "y@16+8 align 2 written",
                                  "seq@24+4 align 0"));
  EXPECT_EQ(contract.params[3].kind, Param::Kind::kSymbolI32);
  ASSERT_EQ(contract.valid.size(), 1u);
  EXPECT_EQ(contract.valid[0].max, 64);
}

}  // namespace
}  // namespace hackc::program

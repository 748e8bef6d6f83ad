// SPDX-License-Identifier: MIT
// Random modules, run twice with values as opaque tokens: once as the module says, once as the
// Program says, on a memory in which every write wipes what it overlaps. A buffer plan that lets
// two live values overlap, loses a carry or takes the wrong layer's weight gives another token.
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/program/program_builder.h"
#include "gtest/gtest.h"
#include "tests/program/module_builder.h"

namespace hackc::program {
namespace {

using ir::SourceDecl;

class RandomModule {
 public:
  explicit RandomModule(unsigned seed) : random_(seed) {}

  ir::LoopModule Make() {
    module_.name = "random";
    module_.symbols = {{"seq", 1, 64}};
    AddSource(module_.sources, SourceDecl::Kind::kInput, Rows(4), "");
    AddSource(module_.sources, SourceDecl::Kind::kInput, Rows(8), "");
    AddSource(module_.sources, SourceDecl::Kind::kWeight, Static(4, 8), "table");
    AddSource(module_.sources, SourceDecl::Kind::kWeight, Static(4, 8), "head");
    int segments = Pick(1, 4);
    for (int i = 0; i < segments; ++i) AddSegment(i);
    int outputs = Pick(1, 3);
    for (int i = 0; i < outputs; ++i) module_.outputs.push_back(Any(visible_).first);
    return module_;
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  const NamedType& Any(const std::vector<NamedType>& from) {
    return from[Pick(0, static_cast<int>(from.size()) - 1)];
  }
  std::string Fresh() { return absl::StrCat("v", counter_++); }

  ir::ValueType AnyType() { return Pick(0, 3) == 0 ? Static(4, 8) : Rows(Pick(0, 1) ? 4 : 8); }
  static bool Same(const ir::ValueType& a, const ir::ValueType& b) {
    return ir::Equal(a.shape[0], b.shape[0]) && ir::Equal(a.shape[1], b.shape[1]);
  }

  void AddSource(std::vector<SourceDecl>& sources, SourceDecl::Kind kind, ir::ValueType type,
                 std::string weight) {
    sources.push_back(Source(kind, Fresh(), type, std::move(weight)));
    visible_.push_back({sources.back().name, type});
  }

  void AddSegment(int index) {
    ir::LoopSegment segment;
    segment.name = absl::StrCat("s", index);
    segment.count = Pick(0, 1) ? 1 : Pick(2, 5);
    segment.first_layer = Pick(0, 3);
    segment.layer_step = Pick(1, 2);
    std::vector<NamedType> outside = visible_;
    std::vector<ir::ValueType> carried;
    int carries = Pick(segment.count > 1 ? 1 : 0, 3);
    for (int i = 0; i < carries; ++i) {
      NamedType initial = Any(outside);
      segment.carries.push_back({Fresh(), initial.first});
      carried.push_back(initial.second);
      visible_.push_back({segment.carries.back().name, initial.second});
    }
    // What layers mostly read and yield: their carries and what they made themselves.
    std::vector<NamedType> recent(visible_.end() - carries, visible_.end());
    AddSource(segment.sources, SourceDecl::Kind::kWeight, Static(4, 8),
              absl::StrCat("layers.{layer}.a", index));
    if (segment.layer_step > 1)
      AddSource(segment.sources, SourceDecl::Kind::kWeight, Static(4, 8), "layers.{layer+1}.b");
    std::vector<NamedType> weights = {
        {segment.sources[0].name, Static(4, 8)}, {"v2", Static(4, 8)}, {"v3", Static(4, 8)}};
    int launches = Pick(1, 6);
    for (int i = 0; i < launches; ++i) {
      bool on_weights = Pick(0, 3) == 0;
      std::vector<NamedType> reads, writes;
      for (int k = Pick(1, 3); k > 0; --k) {
        const bool near = !recent.empty() && Pick(0, 2) > 0;
        reads.push_back(Any(on_weights ? weights : near ? recent : visible_));
      }
      for (int k = Pick(1, 2); k > 0; --k)
        writes.push_back({Fresh(), on_weights ? Static(4, 8) : AnyType()});
      // Few operations, so that kernels are shared.
      segment.ops.push_back(Launch(absl::StrCat("op", Pick(0, 2)), reads, writes));
      for (const NamedType& write : writes) {
        visible_.push_back(write);
        recent.push_back(write);
        if (on_weights) weights.push_back(write);
      }
    }
    std::vector<NamedType> inside = visible_;
    visible_ = outside;
    // A repeated segment yields its carries; one that runs once may publish anything.
    int yields = segment.count > 1 ? carries : Pick(1, 3);
    for (int i = 0; i < yields; ++i) {
      std::vector<NamedType> fit;
      for (const NamedType& value : Pick(0, 3) == 0 ? inside : recent) {
        if (segment.count == 1 || Same(value.second, carried[i])) fit.push_back(value);
      }
      NamedType yield = Any(fit.empty() ? inside : fit);
      while (segment.count > 1 && !Same(yield.second, carried[i])) yield = Any(inside);
      segment.yields.push_back(yield.first);
      segment.results.push_back(Fresh());
      visible_.push_back({segment.results.back(), yield.second});
    }
    module_.segments.push_back(std::move(segment));
  }

  std::mt19937 random_;
  int counter_ = 0;
  ir::LoopModule module_;
  std::vector<NamedType> visible_;
};

std::string TokenOf(const std::string& kernel, const std::vector<std::string>& reads,
                    size_t output) {
  std::string text = absl::StrCat(kernel, "#", output);
  for (const std::string& read : reads) absl::StrAppend(&text, "|", read);
  return absl::StrCat(std::hash<std::string>{}(text));
}

// Copies pass their token on.
std::string Apply(const ir::LoopFn& fn, const std::vector<std::string>& reads, size_t output) {
  return fn.fn.computes == "copies a value" ? reads[0] : TokenOf(KernelText(fn), reads, output);
}

std::vector<std::string> RunModule(const ir::LoopModule& module) {
  std::map<std::string, std::string> env;
  for (const SourceDecl& source : module.sources)
    env[source.name] = source.kind == SourceDecl::Kind::kWeight ? source.weight_name : source.name;
  for (const ir::LoopSegment& segment : module.segments) {
    for (const ir::Carry& carry : segment.carries) env[carry.name] = env.at(carry.initial);
    for (int i = 0; i < segment.count; ++i) {
      int layer = segment.first_layer + i * segment.layer_step;
      for (const SourceDecl& source : segment.sources) {
        env[source.name] = absl::StrReplaceAll(
            source.weight_name,
            {{"{layer}", absl::StrCat(layer)}, {"{layer+1}", absl::StrCat(layer + 1)}});
      }
      for (const ir::LoopLaunch& launch : segment.ops) {
        std::vector<std::string> reads;
        size_t count = launch.args.size() - launch.results.size();
        for (size_t k = 0; k < count; ++k) reads.push_back(env.at(launch.args[k]));
        ir::LoopFn fn = launch.fn;
        bool uses_seq = KernelText(fn).find("[seq") != std::string::npos;
        if (!uses_seq) fn.fn.symbols.clear();
        for (size_t k = 0; k < launch.results.size(); ++k)
          env[launch.results[k].first] = Apply(fn, reads, k);
      }
      std::vector<std::string> yielded;
      for (const std::string& yield : segment.yields) yielded.push_back(env.at(yield));
      for (size_t k = 0; k < segment.yields.size(); ++k) {
        if (k < segment.carries.size() && segment.count > 1)
          env[segment.carries[k].name] = yielded[k];
        env[segment.results[k]] = yielded[k];
      }
    }
  }
  std::vector<std::string> outputs;
  for (const std::string& output : module.outputs) outputs.push_back(env.at(output));
  return outputs;
}

class Machine {
 public:
  Machine(const ProgramPlan& plan, int64_t seq) : plan_(plan), symbols_{{"seq", seq}} {}

  std::vector<std::string> Run() {
    RunSteps(plan_.program.prepare, 0);
    const EntryPoint& entry = plan_.program.entry_points[0];
    RunSteps(entry.steps, 0);
    std::vector<std::string> outputs;
    for (uint32_t output : entry.outputs) outputs.push_back(Read(output, 0));
    return outputs;
  }

  int64_t end() const { return end_; }

 private:
  void RunSteps(const std::vector<Step>& steps, uint32_t iteration) {
    for (const Step& step : steps) {
      for (uint32_t i = 0; i < step.repeat_count; ++i) RunSteps(step.steps, i);
      if (step.repeat_count > 0) continue;
      const ir::LoopFn& fn = plan_.loops[step.launch.kernel];
      std::vector<std::string> reads;
      // A kernel's blocks run in any order: what it writes is gone before it reads.
      for (size_t k = 0; k < step.launch.args.size(); ++k) {
        if (fn.fn.buffers[k].access == ir::Access::kRead) continue;
        Write(step.launch.args[k].buffer, iteration, "half written");
      }
      for (size_t k = 0; k < step.launch.args.size(); ++k) {
        if (fn.fn.buffers[k].access == ir::Access::kRead)
          reads.push_back(Read(step.launch.args[k].buffer, iteration));
      }
      size_t output = 0;
      for (size_t k = 0; k < step.launch.args.size(); ++k) {
        if (fn.fn.buffers[k].access == ir::Access::kRead) continue;
        Write(step.launch.args[k].buffer, iteration, Apply(fn, reads, output++));
      }
    }
  }

  std::string Read(uint32_t id, uint32_t iteration) {
    const Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind == Buffer::Kind::kInput) return buffer.name;
    if (buffer.kind == Buffer::Kind::kWeight) {
      return absl::StrReplaceAll(
          buffer.weight_name,
          {{"{layer}", absl::StrCat(buffer.first_layer + iteration * buffer.layer_step)}});
    }
    if (buffer.kind != Buffer::Kind::kWorkspace)
      return fixed_[{id, buffer.repeat_count ? iteration : 0}];
    auto it = slab_.find(Evaluate(buffer.offset, symbols_));
    return it == slab_.end() ? "nothing" : it->second.second;
  }

  void Write(uint32_t id, uint32_t iteration, std::string token) {
    const Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind == Buffer::Kind::kOutput || buffer.kind == Buffer::Kind::kPrepared) {
      fixed_[{id, buffer.repeat_count ? iteration : 0}] = std::move(token);
      return;
    }
    ASSERT_EQ(buffer.kind, Buffer::Kind::kWorkspace);
    int64_t begin = Evaluate(buffer.offset, symbols_), bytes = 4;
    for (const DimExpr& extent : buffer.shape) bytes *= Evaluate(extent, symbols_);
    EXPECT_EQ(begin % 256, 0);
    end_ = std::max(end_, begin + bytes);
    std::erase_if(slab_, [&](const auto& entry) {
      return entry.first < begin + bytes && begin < entry.second.first;
    });
    slab_[begin] = {begin + bytes, std::move(token)};
  }

  const ProgramPlan& plan_;
  std::map<std::string, int64_t> symbols_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> fixed_;  // outputs and prepared
  std::map<int64_t, std::pair<int64_t, std::string>> slab_;     // begin -> end, token
  int64_t end_ = 0;
};

TEST(ProgramSimulation, ProgramsDoWhatTheirModulesSay) {
  int repeated = 0, copies = 0, prepared = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    ir::LoopModule module = RandomModule(seed).Make();
    ProgramPlan plan = PrefillProgram(module);
    std::vector<std::string> expected = RunModule(module);
    for (int64_t seq : {1, 7, 64}) {
      Machine machine(plan, seq);
      ASSERT_EQ(machine.Run(), expected) << "seed " << seed << " seq " << seq;
      ASSERT_LE(machine.end(),
                Evaluate(plan.program.entry_points[0].workspace_bytes, {{"seq", seq}}));
    }
    for (const Step& step : plan.program.entry_points[0].steps) repeated += step.repeat_count > 0;
    for (const Kernel& kernel : plan.program.kernels) copies += kernel.name == "copy";
    prepared += static_cast<int>(plan.program.prepare.size());
  }
  // The generator reaches what it is for.
  EXPECT_GT(repeated, 300);
  EXPECT_GT(copies, 300);
  EXPECT_GT(prepared, 300);
}

}  // namespace
}  // namespace hackc::program

// SPDX-License-Identifier: MIT
#include "tests/property/random_schedule.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/digits.h"
#include "compiler/ir/rewrite.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/loop_facts.h"

namespace hackc::property {
namespace {

using ir::Digit;
using ir::LoopKind;
using schedule::AxisFacts;

class Maker {
 public:
  Maker(const ir::LoopFn& loop, unsigned seed)
      : loop_(loop), facts_(schedule::FindFacts(loop)), engine_(seed) {}

  bool HasSoftmax() const { return !facts_.softmax_axes.empty(); }

  ir::Schedule FromNothing() {
    ir::Schedule schedule;
    schedule.threads = 32 << Below(4);
    std::map<std::string, int> masks;
    std::map<std::string, LoopKind> kinds;
    for (const AxisFacts& axis : facts_.axes) {
      int taken = 0;
      for (const std::string& outer : axis.outer) taken |= masks[outer];
      ir::AxisSchedule cut{axis.name, LoopKind::kSerial, 1, Digits(axis, taken, schedule.threads)};
      masks[axis.name] = ir::ThreadMask(cut.digits);
      if (OneIn(4)) cut.steps = 1 + Below(3);
      if (GridPossible(axis, kinds) && !OneIn(4)) {
        cut.outer = static_cast<LoopKind>(static_cast<int>(LoopKind::kGridX) + Below(3));
      }
      kinds[axis.name] = cut.outer;
      schedule.axes.push_back(std::move(cut));
    }
    Stages(schedule);
    return schedule;
  }

  void Change(ir::Schedule& schedule) {
    for (int changes = 1 + Below(3); changes > 0; --changes) {
      ir::AxisSchedule* axis =
          schedule.axes.empty() ? nullptr : &schedule.axes[Below(schedule.axes.size())];
      switch (Below(7)) {
        case 0:
          if (axis != nullptr) axis->steps = 1 + Below(3);
          break;
        case 1:  // another number of registers
          if (axis == nullptr) break;
          for (Digit& digit : axis->digits) {
            if (digit.kind == Digit::Kind::kRegister && OneIn(2)) digit.extent = 1 + Below(5);
          }
          break;
        case 2:
          if (axis != nullptr && axis->outer != LoopKind::kSerial) {
            axis->outer = static_cast<LoopKind>(static_cast<int>(LoopKind::kGridX) + Below(3));
          }
          break;
        case 3:
          if (!schedule.stages.empty()) {
            schedule.stages.erase(schedule.stages.begin() + Below(schedule.stages.size()));
          }
          break;
        case 4:
          for (ir::StageSchedule& stage : schedule.stages) stage.padding = 4 * Below(4);
          break;
        case 5:
          for (ir::StageSchedule& stage : schedule.stages) Deepen(stage);
          break;
        default: Stages(schedule);
      }
    }
  }

 private:
  int Below(size_t n) { return n == 0 ? 0 : static_cast<int>(engine_() % n); }
  bool OneIn(size_t n) { return Below(n) == 0; }

  // Some of the thread's bits that no outer axis has, and some registers, in any order.
  std::vector<Digit> Digits(const AxisFacts& axis, int taken, int threads) {
    std::vector<Digit> digits;
    for (int stride = 1; stride < threads; stride *= 2) {
      if ((taken & stride) != 0 || OneIn(3)) continue;
      int extent = 2;
      while (extent * stride < threads && (taken & (extent * stride)) == 0 &&
             extent < axis.max_extent && !OneIn(3)) {
        extent *= 2;
      }
      digits.push_back({Digit::Kind::kThread, extent, stride});
      taken |= (extent - 1) * stride;
      if (OneIn(2)) break;
    }
    if (OneIn(2)) digits.push_back({Digit::Kind::kRegister, 1 + Below(5), 1});
    std::shuffle(digits.begin(), digits.end(), engine_);
    return digits;
  }

  // A grid loop may only be inside grid loops, and alone at its place.
  bool GridPossible(const AxisFacts& axis, const std::map<std::string, LoopKind>& kinds) const {
    if (axis.role != ir::AxisRole::kFree) return false;
    for (const std::string& outer : axis.outer) {
      if (kinds.at(outer) == LoopKind::kSerial) return false;
    }
    // Nothing but the loop stands in its place: no statement beside it, no other loop.
    const ir::Block* block = &loop_.fn.body;
    for (size_t depth = 0; depth <= axis.outer.size(); ++depth) {
      const ir::For* only = block->size() == 1 ? ir::As<ir::For>(block->front()) : nullptr;
      if (only == nullptr) return false;
      if (only->axis == axis.name) return true;
      block = &only->body;
    }
    return false;
  }

  void Deepen(ir::StageSchedule& stage) {
    stage.depth = 1 + Below(3);
    stage.engine = OneIn(2) ? ir::CopyEngine::kCpAsync : ir::CopyEngine::kRegisters;
    stage.cache = OneIn(2) ? ir::CacheHint::kKeep : ir::CacheHint::kNormal;
  }

  void Stages(ir::Schedule& schedule) {
    std::set<std::string> loaded;
    ir::WalkExprs(loop_.fn.body, [&](const ir::Expr& e) {
      for (const ir::Load* load : ir::Loads(e)) loaded.insert(load->buffer);
    });
    for (const ir::BufferDecl& buffer : loop_.fn.buffers) {
      if (!loaded.contains(buffer.name) || buffer.access != ir::Access::kRead || !OneIn(2))
        continue;
      const std::string& axis = facts_.axes[Below(facts_.axes.size())].name;
      const bool known =
          std::any_of(schedule.stages.begin(), schedule.stages.end(),
                      [&](const ir::StageSchedule& stage) { return stage.buffer == buffer.name; });
      if (known) continue;
      ir::StageSchedule stage{buffer.name, axis};
      stage.padding = 4 * Below(3);
      if (OneIn(2)) Deepen(stage);
      schedule.stages.push_back(std::move(stage));
    }
  }

  const ir::LoopFn& loop_;
  const schedule::LoopFacts facts_;
  std::mt19937 engine_;
};

}  // namespace

ir::Schedule RandomSchedule(const ir::LoopFn& loop, const schedule::Target& target, unsigned seed) {
  Maker maker(loop, seed);
  if (!maker.HasSoftmax() && seed % 4 != 0) return maker.FromNothing();
  ir::Schedule schedule = schedule::ChooseSchedule(loop, target);
  maker.Change(schedule);
  return schedule;
}

}  // namespace hackc::property

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
      if (OneIn(12)) continue;  // an axis that the schedule says nothing of
      int taken = 0;
      for (const std::string& outer : axis.outer) taken |= masks[outer];
      if (OneIn(16)) taken = 0;
      ir::AxisSchedule cut{axis.name, LoopKind::kSerial, 1, Digits(axis, taken, schedule.threads)};
      // Axes of one state must be spread alike.
      for (const ir::AxisSchedule& other : schedule.axes) {
        const bool alike = facts_.Find(other.axis)->max_extent == axis.max_extent;
        if (alike && (ir::ThreadMask(other.digits) & taken) == 0 && !OneIn(4)) {
          cut.digits = other.digits;
        }
      }
      if (OneIn(3) && !cut.digits.empty()) Cover(cut.digits, axis.max_extent);
      masks[axis.name] = ir::ThreadMask(cut.digits);
      if (OneIn(4)) cut.steps = 1 + Below(3);
      if (GridPossible(axis, kinds) && !OneIn(4)) {
        cut.outer = static_cast<LoopKind>(static_cast<int>(LoopKind::kGridX) + Below(3));
      }
      kinds[axis.name] = cut.outer;
      schedule.axes.push_back(std::move(cut));
    }
    for (const std::string& axis : facts_.softmax_axes) {
      if (OneIn(3)) continue;
      ir::AxisSchedule values{axis + "_value", LoopKind::kSerial, 1 + Below(4), {}};
      if (OneIn(2)) values.digits.push_back({Digit::Kind::kRegister, 1 << Below(3), 1});
      if (OneIn(2)) values.digits.push_back({Digit::Kind::kThread, 2, 1 << Below(5)});
      schedule.axes.push_back(std::move(values));
    }
    if (OneIn(8)) schedule.min_blocks_per_sm = 1 + Below(40);
    Stages(schedule);
    return schedule;
  }

  void Change(ir::Schedule& schedule) {
    for (int changes = 1 + Below(3); changes > 0; --changes) {
      ir::AxisSchedule* axis =
          schedule.axes.empty() ? nullptr : &schedule.axes[Below(schedule.axes.size())];
      switch (Below(9)) {
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
          for (ir::StageSchedule& stage : schedule.stages) stage.padding = 4 * Below(5);
          break;
        case 5:
          for (ir::StageSchedule& stage : schedule.stages) Deepen(stage);
          break;
        case 6:
          if (axis != nullptr && axis->digits.size() > 1) {
            std::swap(axis->digits.front(), axis->digits.back());
          }
          break;
        case 7: schedule.threads = 32 << Below(5); break;
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

  // The digits with as many registers as make them cover `extent`, where some do.
  static void Cover(std::vector<Digit>& digits, int64_t extent) {
    std::erase_if(digits, [](const Digit& d) { return d.kind == Digit::Kind::kRegister; });
    const int64_t threads = ir::CoordinateCount(digits);
    if (extent % threads != 0 || extent / threads > 64) return;
    digits.push_back({Digit::Kind::kRegister, static_cast<int>(extent / threads), 1});
  }

  // A grid loop may only be inside grid loops, and alone at its place.
  bool GridPossible(const AxisFacts& axis, const std::map<std::string, LoopKind>& kinds) const {
    if (axis.role != ir::AxisRole::kFree) return false;
    for (const std::string& outer : axis.outer) {
      const auto kind = kinds.find(outer);
      if (kind == kinds.end() || kind->second == LoopKind::kSerial) return false;
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
  if (seed % 4 != 0 && (!maker.HasSoftmax() || seed % 2 == 0)) return maker.FromNothing();
  ir::Schedule schedule = schedule::ChooseSchedule(loop, target).value();
  maker.Change(schedule);
  return schedule;
}

}  // namespace hackc::property

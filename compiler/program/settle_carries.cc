// SPDX-License-Identifier: MIT
#include "compiler/program/settle_carries.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hackc::program {
namespace {

class Settler {
 public:
  explicit Settler(Flow& flow) : flow_(flow) {}

  std::vector<int> Run() {
    for (size_t s = 0; s < flow_.sections.size(); ++s) {
      if (flow_.sections[s].count > 1) SettleSection(s);
    }
    SettleOutputs();
    std::vector<int> groups(flow_.values.size());
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    for (const FlowSection& section : flow_.sections) {
      for (const FlowCarry& carry : section.carries) {
        // The initial value may be the result of an earlier section: join whole groups.
        int target = groups[carry.initial];
        std::set<int> joined = {groups[carry.inside], groups[carry.yield], groups[carry.result]};
        for (int& group : groups) {
          if (joined.count(group)) group = target;
        }
      }
    }
    return groups;
  }

 private:
  int AddCopy(int from, int section, std::vector<FlowLaunch>& where) {
    const int to = flow_.AddValue({.name = absl::StrCat(flow_.values[from].name, ".copy"),
                                   .type = flow_.values[from].type,
                                   .section = section});
    where.push_back(MakeCopy(flow_, from, to));
    return to;
  }

  void SettleSection(size_t s) {
    SettleInitials(s);
    const int id = static_cast<int>(s);
    // A yield must be made in the section, for one carry alone.
    std::set<int> yielded;
    for (FlowCarry& carry : flow_.sections[s].carries) {
      if (Making(carry.yield, s) < 0 || !yielded.insert(carry.yield).second) {
        carry.yield = AddCopy(carry.yield, id, flow_.sections[s].launches);
        yielded.insert(carry.yield);
      }
    }
    // And from its making on, nothing may read the value whose place it takes.
    for (FlowCarry& carry : flow_.sections[s].carries) {
      if (LastRead(carry.inside, s) >= Making(carry.yield, s)) {
        carry.yield = AddCopy(carry.yield, id, flow_.sections[s].launches);
      }
    }
  }

  // The initial value's memory becomes the carry's, unless someone else still needs the value.
  void SettleInitials(size_t s) {
    std::vector<FlowLaunch> copies;
    std::set<int> taken;
    for (FlowCarry& carry : flow_.sections[s].carries) {
      const FlowValue& initial = flow_.values[carry.initial];
      bool own = initial.kind == Buffer::Kind::kWorkspace && initial.section == -1 &&
                 !ReadFrom(carry.initial, s) && taken.insert(carry.initial).second;
      if (!own) carry.initial = AddCopy(carry.initial, -1, copies);
    }
    if (copies.empty()) return;
    if (s > 0 && flow_.sections[s - 1].count == 1) {
      auto& launches = flow_.sections[s - 1].launches;
      std::move(copies.begin(), copies.end(), std::back_inserter(launches));
      return;
    }
    // The repeated section moves on by one and is settled as the next.
    InsertSection(s, {.launches = std::move(copies)});
  }

  void InsertSection(size_t s, FlowSection section) {
    flow_.sections.insert(flow_.sections.begin() + static_cast<long>(s), std::move(section));
    for (FlowValue& value : flow_.values) value.section += value.section >= static_cast<int>(s);
  }

  void SettleOutputs() {
    FlowSection last;
    std::set<int> returned;
    for (int& output : flow_.outputs) {
      bool own =
          flow_.values[output].kind == Buffer::Kind::kWorkspace && returned.insert(output).second;
      if (!own) output = AddCopy(output, -1, last.launches);
    }
    if (!last.launches.empty()) flow_.sections.push_back(std::move(last));
  }

  // Whether anything from section `s` on reads `value`, or the caller does.
  bool ReadFrom(int value, size_t s) const {
    if (absl::c_count(flow_.outputs, value)) return true;
    for (size_t i = s; i < flow_.sections.size(); ++i) {
      if (LastRead(value, i) >= 0) return true;
      for (const FlowCarry& carry : flow_.sections[i].carries) {
        if ((i > s && carry.initial == value) || carry.yield == value) return true;
      }
    }
    return false;
  }

  // Index of the launch that makes `value`; -1 if none does.
  int Making(int value, size_t s) const { return Last(value, s, Writes); }
  int LastRead(int value, size_t s) const { return Last(value, s, Reads); }

  int Last(int value, size_t s, bool (*touches)(const ir::BufferDecl&)) const {
    const std::vector<FlowLaunch>& launches = flow_.sections[s].launches;
    for (size_t i = launches.size(); i-- > 0;) {
      for (size_t k = 0; k < launches[i].args.size(); ++k) {
        if (launches[i].args[k] == value && touches(launches[i].fn.fn.buffers[k]))
          return static_cast<int>(i);
      }
    }
    return -1;
  }

  Flow& flow_;
};

}  // namespace

std::vector<int> SettleCarries(Flow& flow) { return Settler(flow).Run(); }

}  // namespace hackc::program

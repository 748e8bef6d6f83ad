// SPDX-License-Identifier: MIT
// Runs the copies, commits, waits and reads of one thread.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/kernel_checks.h"
#include "compiler/ir/rewrite.h"

namespace hackc::ir {
namespace {

class CopyRun {
 public:
  explicit CopyRun(const KernelFn& kernel) {
    for (const SymbolDecl& symbol : kernel.fn.symbols)
      known_[VarOf(symbol.name)] = IntLit(symbol.max);
    WalkStmts(
        kernel.fn.body, [&](const AsyncCopy& copy) { targets_.insert(copy.target); },
        [&](const Alloc& alloc) {
          rounds_ = std::max(rounds_, std::min(alloc.slots, kMostSlots) + 2);
          if (alloc.slots > 1) rings_.insert(alloc.name);
        });
    if (!targets_.empty()) Run(kernel.fn.body);
  }

  std::vector<EarlyRead> found;

 private:
  static constexpr int kMostSlots = 8;
  // A slot of a ring; -1 where it is not known, and for arrays that are no rings.
  using Place = std::pair<std::string, int64_t>;

  std::optional<int64_t> Value(const Expr& e) const {
    return AsInt(Rewrite(e, [&](const Expr& node) -> Expr {
      if (As<Builtin>(node)) return IntLit(0);
      if (const Symbol* symbol = As<Symbol>(node)) return FindOr(known_, VarOf(symbol->name));
      const Var* var = As<Var>(node);
      return var ? FindOr(known_, var->name) : nullptr;
    }));
  }

  bool Happens(const Expr& guard) const { return !guard || Value(guard) == 1; }

  Place PlaceOf(const std::string& buffer, const std::vector<Expr>& indices) const {
    const bool ring = rings_.contains(buffer) && !indices.empty();
    return {buffer, ring ? Value(indices[0]).value_or(-1) : -1};
  }

  // False when what happens depends on something that is not known: the run ends there.
  bool Run(const Block& body) {
    for (const Stmt& s : body) {
      nest_.push_back(s);
      const bool goes_on = Step(s);
      nest_.pop_back();
      if (!goes_on) return false;
    }
    return true;
  }

  bool Step(const Stmt& s) {
    const auto read_all = [&](const Expr& e) {
      for (const Load* load : Loads(e)) {
        if (Happens(load->guard)) Read(PlaceOf(load->buffer, load->indices));
      }
    };
    const Store* store = As<Store>(s);
    if (const If* branch = As<If>(s)) {
      read_all(branch->condition);
    } else if (!As<For>(s) && (!store || Happens(store->guard))) {
      WalkExprs({s}, read_all);
    }
    if (const VectorLoad* load = As<VectorLoad>(s); load && Happens(load->guard))
      Read(PlaceOf(load->source, load->indices));
    if (const LoadMatrix* load = As<LoadMatrix>(s)) Read(PlaceOf(load->source, load->indices));
    if (const AsyncCopy* copy = As<AsyncCopy>(s)) {
      group_.insert(PlaceOf(copy->target, copy->target_indices));
    } else if (As<AsyncCommit>(s)) {
      groups_.push_back(std::move(group_));
      group_.clear();
    } else if (const AsyncWait* wait = As<AsyncWait>(s)) {
      while (static_cast<int>(groups_.size()) > std::max(wait->pending, 0)) {
        groups_.erase(groups_.begin());
      }
    } else if (const Let* let = As<Let>(s)) {
      const auto value = IsFloat(let->value->dtype) ? std::nullopt : Value(let->value);
      known_[let->name] = value ? IntLit(*value, let->value->dtype) : nullptr;
    } else if (const If* branch = As<If>(s)) {
      const auto taken = Value(branch->condition);
      if (!taken) return !Matters(branch->then);
      return *taken == 0 || Run(branch->then);
    } else if (const For* loop = As<For>(s)) {
      const auto extent = Value(loop->extent);
      if (!Matters(loop->body)) return true;
      if (!extent) return false;
      for (int64_t i = 0; i < std::min<int64_t>(*extent, rounds_); ++i) {
        known_[loop->axis] = IntLit(i);
        if (!Run(loop->body)) return false;
      }
      if (*extent > rounds_) groups_.clear();  // later rounds are not run
    }
    return true;
  }

  // Something in here changes or sees what is in flight.
  bool Matters(const Block& body) const {
    bool matters = false;
    WalkStmts(body, [&](const Stmt& s) {
      matters |= IsA<AsyncCopy, AsyncCommit, AsyncWait, LoadMatrix, VectorLoad>(s);
    });
    WalkExprs(body, [&](const Expr& e) { matters |= !Loads(e).empty(); });
    return matters;
  }

  void Read(const Place& place) {
    if (!targets_.contains(place.first)) return;
    const auto holds = [&](const std::set<Place>& group) {
      return absl::c_any_of(group, [&](const Place& p) {
        return p.first == place.first && p.second == place.second &&
               (p.second >= 0 || !rings_.contains(p.first));
      });
    };
    if (!holds(group_) && absl::c_none_of(groups_, holds)) return;
    if (reported_.insert(nest_.back()).second) found.push_back({nest_, place.first});
  }

  std::map<std::string, Expr> known_;  // values of symbols and variables; null: not known
  std::set<std::string> targets_, rings_;
  std::vector<Stmt> nest_;
  std::set<Place> group_;                // not committed yet
  std::vector<std::set<Place>> groups_;  // committed, oldest first
  std::set<Stmt> reported_;
  int rounds_ = 3;
};

}  // namespace

std::vector<EarlyRead> ReadsInFlight(const KernelFn& kernel) { return CopyRun(kernel).found; }

}  // namespace hackc::ir

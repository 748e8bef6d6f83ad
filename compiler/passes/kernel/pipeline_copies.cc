// SPDX-License-Identifier: MIT
#include "compiler/passes/kernel/pipeline_copies.h"

#include <map>
#include <set>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/lookup.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

class Pipeliner {
 public:
  explicit Pipeliner(const KernelFn& kernel)
      : kernel_(kernel), ranges_(kernel.fn.symbols), names_(TakenNames(kernel.fn)) {
    ranges_.SetBuiltin(BuiltinKind::kThread, {0, kernel.threads - 1});
  }

  KernelFn Run() {
    KernelFn out = kernel_;
    out.fn.body = Visit(kernel_.fn.body, false);
    return out;
  }

 private:
  Block Visit(const Block& block, bool nested) {
    Block out;
    for (const Stmt& stmt : block) {
      const auto* loop = As<For>(stmt);
      if (loop == nullptr || loop->kind != LoopKind::kSerial) {
        out.push_back(stmt);
        continue;
      }
      For copy = *loop;
      ranges_.SetAxis(loop->axis, loop->extent);
      copy.body = Visit(loop->body, true);
      if (!Pipeline(copy, nested, out)) out.push_back(MakeStmt(std::move(copy)));
    }
    return out;
  }

  // Writes nothing but rings.
  static bool FillsOnly(const Stmt& stmt, const std::set<std::string>& rings) {
    bool fills = false, other = false;
    const auto write = [&](const std::string& target) {
      (rings.count(target) ? fills : other) = true;
    };
    WalkStmts({stmt}, [&](const Stmt& s) {
      if (const auto* copy = As<AsyncCopy>(s)) return write(copy->target);
      if (const auto* store = As<Store>(s)) return write(store->buffer);
      other |= !As<For>(s) && !As<If>(s);
    });
    return fills && !other;
  }

  // The statements of `fills` for iteration `index`, with loop names of their own.
  Block FillFor(const Block& fills, const std::string& axis, const Expr& index) {
    std::map<std::string, std::string> own;
    WalkStmts(fills, [&](const For& loop) {
      own[loop.axis] = names_.Unique(Cat(loop.axis, "_f", counter_));
    });
    ++counter_;
    Block renamed =
        RenameAll(fills, [&](const std::string& name) { return FindOr(own, name, name); });
    return MapExprs(SubstituteVars(renamed, axis, index),
                    [&](const Expr& e) { return Simplify(e, ranges_); });
  }

  // Whether `stmt` may run after `copies`: it makes nothing that they read, waits for nothing, and
  // is no loop that copies itself.
  static bool MayFollow(const Stmt& stmt, const Block& copies) {
    const std::set<std::string> named = NamesIn(copies);
    bool may = true;
    WalkStmts({stmt}, [&](const Stmt& s) {
      const auto* loop = As<For>(s);
      const auto* alloc = As<Alloc>(s);
      const auto* store = As<Store>(s);
      may &= loop ? loop->kind == LoopKind::kUnroll
                  : (alloc && !named.count(alloc->name)) || (store && !named.count(store->buffer));
    });
    return may;
  }

  bool Pipeline(const For& loop, bool nested, Block& out) {
    std::set<std::string> rings;
    Block allocs, fills, work;
    int depth = 0;
    for (const Stmt& stmt : loop.body) {
      const auto* alloc = As<Alloc>(stmt);
      // Rings that an inner loop has left here are its own.
      if (alloc && alloc->slots > 1 && !done_.count(alloc->name)) {
        HACKC_CHECK(depth == 0 || depth == alloc->slots)
            << alloc->name << ": rings of one loop differ in depth";
        depth = alloc->slots;
        rings.insert(alloc->name);
        allocs.push_back(stmt);
      } else if (FillsOnly(stmt, rings)) {
        fills.push_back(stmt);
      } else {
        work.push_back(stmt);
      }
    }
    if (rings.empty()) return false;
    done_.insert(rings.begin(), rings.end());
    Block first = allocs;
    if (nested) first.push_back(MakeStmt(Barrier{}));
    // Copies of iterations that there never are would be dead code, and outside of what was proved.
    auto fill = [&](const Expr& ahead, Block& into) {
      const Expr inside = Simplify(Lt(ahead, loop.extent), ranges_);
      Expr index = ahead;
      if (auto trips = AsInt(loop.extent); trips && !AsInt(inside)) {
        // Bounded by itself, so that indices are provably inside without reasoning about the
        // condition.
        index = Axis(names_.Unique(loop.axis + "_ahead"));
        into.push_back(MakeStmt(Let{As<Var>(index)->name, Min(ahead, IntLit(*trips - 1))}));
      }
      Block body;
      if (AsInt(inside) != 0) body = FillFor(fills, loop.axis, index);
      if (!AsInt(inside)) body = {MakeStmt(If{inside, std::move(body)})};
      into.insert(into.end(), body.begin(), body.end());
      into.push_back(MakeStmt(AsyncCommit{}));
    };
    for (int i = 0; i + 1 < depth; ++i) fill(IntLit(i), first);
    // Copies start before what they do not need: loads that stage other operands would hold them
    // up.
    auto at = out.end();
    while (!nested && at != out.begin() && MayFollow(*(at - 1), first)) --at;
    out.insert(at, first.begin(), first.end());
    For pipelined = loop;
    pipelined.body = {MakeStmt(AsyncWait{depth - 2}), MakeStmt(Barrier{})};
    fill(Axis(loop.axis) + (depth - 1), pipelined.body);
    pipelined.body.insert(pipelined.body.end(), work.begin(), work.end());
    out.push_back(MakeStmt(std::move(pipelined)));
    return true;
  }

  const KernelFn& kernel_;
  RangeMap ranges_;
  NameSet names_;
  std::set<std::string> done_;  // rings that are filled ahead
  int counter_ = 0;
};

}  // namespace

absl::StatusOr<KernelFn> PipelineCopies(const KernelFn& kernel) { return Pipeliner(kernel).Run(); }

}  // namespace hackc::passes

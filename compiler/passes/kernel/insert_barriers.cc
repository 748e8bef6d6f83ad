// SPDX-License-Identifier: MIT
#include "compiler/passes/kernel/insert_barriers.h"

#include <set>

#include "compiler/ir/rewrite.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

struct State {
  std::set<std::string> read, written;
  bool operator==(const State&) const = default;
  void Join(const State& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
  }
};

class Inserter {
 public:
  explicit Inserter(const KernelFn& kernel) {
    WalkStmts(kernel.fn.body, [&](const Stmt& stmt) {
      if (const auto* alloc = As<Alloc>(stmt);
          alloc && alloc->space == MemorySpace::kShared && alloc->slots == 1)
        shared_.insert(alloc->name);
    });
  }

  // Returns `block` with barriers; `state` goes from entry to exit.
  Block Visit(const Block& block, State& state) {
    Block out;
    for (const Stmt& stmt : block) {
      if (const auto* loop = As<For>(stmt)) {
        State extent_use;
        UseExpr(loop->extent, extent_use);
        HACKC_CHECK(extent_use.read.empty())
            << "loop bound of " << loop->axis << " in shared memory";
        if (loop->kind == LoopKind::kUnroll) {
          // Iterations of an unrolled loop belong to one statement of the block's program: different threads
          // and iterations touch different elements, or the same ones for reading.
          State use;
          Use(loop->body, use);
          if (Conflict(use, state)) {
            out.push_back(MakeStmt(Barrier{}));
            state = {};
          }
          state.Join(use);
          out.push_back(stmt);
          continue;
        }
        // What happened before the loop is settled before it, once, not in every iteration.
        State use;
        Use(loop->body, use);
        if (Conflict(use, state)) {
          out.push_back(MakeStmt(Barrier{}));
          state = {};
        }
        // The body is entered from above and from its own end.
        State entry = state;
        for (int round = 0; round < 2; ++round) {
          State exit = entry;
          Visit(loop->body, exit);
          entry.Join(exit);
        }
        state = entry;
        For copy = *loop;
        copy.body = Visit(loop->body, state);
        state.Join(entry);  // the loop may run no iteration
        out.push_back(MakeStmt(std::move(copy)));
        continue;
      }
      if (As<Barrier>(stmt)) {
        state = {};
        out.push_back(stmt);
        continue;
      }
      State use;
      Use({stmt}, use);
      if (Conflict(use, state)) {
        out.push_back(MakeStmt(Barrier{}));
        state = {};
      }
      state.Join(use);
      out.push_back(stmt);
    }
    return out;
  }

 private:
  static bool Conflict(const State& use, const State& since) {
    for (const std::string& name : use.read) {
      if (since.written.count(name)) return true;
    }
    for (const std::string& name : use.written) {
      if (since.written.count(name) || since.read.count(name)) return true;
    }
    return false;
  }

  void UseExpr(const Expr& e, State& use) const {
    for (const Load* load : Loads(e)) {
      if (shared_.count(load->buffer)) use.read.insert(load->buffer);
    }
  }

  void Use(const Block& block, State& use) const {
    WalkExprs(block, [&](const Expr& e) { UseExpr(e, use); });
    auto write = [&](const std::string& name) {
      if (shared_.count(name)) use.written.insert(name);
    };
    auto read = [&](const std::string& name) {
      if (shared_.count(name)) use.read.insert(name);
    };
    WalkStmts(block, [&](const Stmt& stmt) {
      if (const auto* store = As<Store>(stmt)) write(store->buffer);
      if (const auto* store = As<VectorStore>(stmt)) write(store->target);
      if (const auto* load = As<VectorLoad>(stmt)) read(load->source);
      if (const auto* copy = As<AsyncCopy>(stmt)) write(copy->target);
      if (const auto* load = As<LoadMatrix>(stmt)) read(load->source);
    });
  }

  std::set<std::string> shared_;
};

}  // namespace

absl::StatusOr<KernelFn> InsertBarriers(const KernelFn& kernel) {
  KernelFn out = kernel;
  State state;
  out.fn.body = Inserter(kernel).Visit(kernel.fn.body, state);
  return out;
}

}  // namespace hackc::passes

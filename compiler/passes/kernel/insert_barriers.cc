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
    WalkStmts(kernel.fn.body, [&](const Alloc& alloc) {
      if (alloc.space == MemorySpace::kShared && alloc.slots == 1) shared_.insert(alloc.name);
    });
  }

  // Returns `block` with barriers; `state` goes from entry to exit.
  Block Visit(const Block& block, State& state) {
    Block out;
    for (const Stmt& stmt : block) {
      if (As<Barrier>(stmt)) {
        state = {};
        out.push_back(stmt);
        continue;
      }
      const auto* loop = As<For>(stmt);
      if (loop) {
        Walk(loop->extent, [&](const Load& load) {
          HACKC_CHECK(!shared_.count(load.buffer))
              << "loop bound of " << loop->axis << " in shared memory";
        });
      }
      // What happened before a loop is settled before it, once, not in every iteration.
      State use;
      Use(loop ? loop->body : Block{stmt}, use);
      if (Conflict(use, state)) {
        out.push_back(MakeStmt(Barrier{}));
        state = {};
      }
      // Iterations of an unrolled loop belong to one statement of the block's program: different
      // threads and iterations touch different elements, or the same ones for reading.
      if (!loop || loop->kind == LoopKind::kUnroll) {
        state.Join(use);
        out.push_back(stmt);
        continue;
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
    }
    return out;
  }

 private:
  static bool Conflict(const State& use, const State& since) {
    const auto common = [](const std::set<std::string>& a, const std::set<std::string>& b) {
      return absl::c_any_of(a, [&](const std::string& name) { return b.count(name) > 0; });
    };
    return common(use.read, since.written) || common(use.written, since.written) ||
           common(use.written, since.read);
  }

  void Use(const Block& block, State& use) const {
    auto write = [&](const std::string& name) {
      if (shared_.count(name)) use.written.insert(name);
    };
    auto read = [&](const std::string& name) {
      if (shared_.count(name)) use.read.insert(name);
    };
    WalkExprs(block, [&](const Load& load) { read(load.buffer); });
    WalkStmts(
        block, [&](const Store& store) { write(store.buffer); },
        [&](const VectorStore& store) { write(store.target); },
        [&](const VectorLoad& load) { read(load.source); },
        [&](const AsyncCopy& copy) { write(copy.target); },
        [&](const LoadMatrix& load) { read(load.source); });
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

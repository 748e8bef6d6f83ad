// SPDX-License-Identifier: MIT
// Statements compiled to calls over a LaneState; the inside of lane_machine.cc.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/interp/lane_expr.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

struct LaneStmt {
  ir::Stmt source;
  std::function<void(const Active&)> run;
};
using LaneBlock = std::vector<LaneStmt>;

// Compiles and runs the statements of one function. Failures are thrown as Failure; `path` then
// holds the statements that were being compiled or run, outermost first.
class LaneCode {
 public:
  LaneCode(LaneState& state, Names& names, const ir::Block& body);

  LaneBlock Compile(const ir::Block& block);
  void Run(const LaneBlock& block, const Active& active);
  void StartBlock();  // forgets copies in flight

  const std::vector<const ir::StmtNode*>& path() const { return path_; }
  int AddSlot(const std::string& name, bool uniform);

 private:
  using Runner = std::function<void(const Active&)>;
  // A memory and the expressions of an address in it.
  struct Address {
    LaneMemory* memory;
    std::vector<std::shared_ptr<LaneExpr>> indices;
    std::shared_ptr<std::vector<int64_t>> offsets;
  };
  struct Copy {
    LaneMemory* target;
    int64_t offset;
    std::vector<Cell> values;
  };
  struct CopyQueue {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
  };

  // What `n` does to states; `change(state, operands)` does it to one.
  template <typename Change>
  Runner ChangeStates(const std::string& accumulator, const std::vector<ir::Expr>& indices,
                      const std::vector<ir::Expr>& operands, const ir::Expr& guard, Change change);
  // Runs `body` for the lanes where `guard` holds, if there are any.
  template <typename Body>
  Runner Guarded(const ir::Expr& guard, Body body);
  Runner CompileOne(const ir::For& n);
  Runner CompileOne(const ir::Let& n);
  Runner CompileOne(const ir::Accumulator& n);
  Runner CompileOne(const ir::Accumulate& n);
  Runner CompileOne(const ir::Store& n);
  Runner CompileOne(const ir::Alloc& n);
  Runner CompileOne(const ir::Combine& n);
  Runner CompileOne(const ir::If& n);
  Runner CompileOne(const ir::VectorLoad& n);
  Runner CompileOne(const ir::VectorStore& n);
  Runner CompileOne(const ir::Barrier& n);
  Runner CompileOne(const ir::AsyncCopy& n);
  Runner CompileOne(const ir::AsyncCommit& n);
  Runner CompileOne(const ir::AsyncWait& n);
  Runner CompileOne(const ir::LoadMatrix& n);
  Runner CompileOne(const ir::Mma& n);

  std::shared_ptr<LaneExpr> Expression(const ir::Expr& e);
  Address AddressOf(const std::string& memory, const std::vector<ir::Expr>& indices);
  // Element offset for each lane of `active` (others keep garbage), `width` elements checked. Stays
  // valid until the next call for this address.
  const std::vector<int64_t>& Offsets(const Address& address, const Active& active, int width);

  // `width` elements for each lane of `active`, [lane][element]: zeros where `guard` does not hold.
  std::vector<Cell> ReadVectors(const Address& source, LaneExpr* guard, const Active& active,
                                int width);

  LaneState& state_;
  Names& names_;
  ir::SharedLayout shared_layout_;
  std::vector<CopyQueue> copies_;
  std::vector<const ir::StmtNode*> path_;
};

}  // namespace hackc::interp

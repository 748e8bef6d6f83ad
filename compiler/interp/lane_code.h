// SPDX-License-Identifier: MIT
// Statements compiled to calls over a LaneState; the inside of lane_machine.cc.
// Thread safety: compiled once, then read by the lanes of one block.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/interp/lane_expr.h"
#include "compiler/interp/warp_block.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

struct LaneStmt {
  ir::Stmt source;
  std::function<void(const Active&)> run;
};
using LaneBlock = std::vector<LaneStmt>;

// A tensor map with its sizes known: elements, outermost first, all five of them strided.
struct BoundMap {
  LaneMemory* buffer = nullptr;
  std::vector<int64_t> dims, strides;
  std::vector<int> box;
  int swizzle = 0;
};

// Whether the body holds statements that need each warp to run on its own.
bool NeedsWarps(const ir::Block& body);

// Compiles and runs the statements of one function. Failures are thrown as Failure; `path` then
// holds the statements that were being compiled or run, outermost first.
class LaneCode {
 public:
  LaneCode(LaneState& state, Names& names, const ir::Block& body);

  LaneBlock Compile(const ir::Block& block);
  void Run(const LaneBlock& block, const Active& active);
  void StartBlock();  // forgets copies in flight
  // Runs one block, whichever way it has to be run.
  void RunBlock(const LaneBlock& body, const Active& all);
  void AddMap(const std::string& name, BoundMap map) { maps_[name] = std::move(map); }

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
  // lane_async_code.cc
  Runner CompileOne(const ir::AtomicAdd& n);
  Runner CompileOne(const ir::Role& n);
  Runner CompileOne(const ir::NamedBarrier& n);
  Runner CompileOne(const ir::MbarrierInit& n);
  Runner CompileOne(const ir::MbarrierArrive& n);
  Runner CompileOne(const ir::MbarrierWait& n);
  Runner CompileOne(const ir::ProxyFence& n);
  Runner CompileOne(const ir::BulkLoad& n);
  Runner CompileOne(const ir::BulkStore& n);
  Runner CompileOne(const ir::BulkCommit& n);
  Runner CompileOne(const ir::BulkWait& n);
  Runner CompileOne(const ir::Wgmma& n);
  Runner CompileOne(const ir::WgmmaFence& n);
  Runner CompileOne(const ir::WgmmaCommit& n);
  Runner CompileOne(const ir::WgmmaWait& n);
  // `body(warp)` where a whole warp gets to the statement `what`.
  template <typename Body>
  Runner ByWarp(const char* what, Body body);
  LaneMemory* Mbarriers(const std::string& name);
  const BoundMap* MapOf(const std::string& name, size_t coordinates);
  // Each element of the box at `coordinates`: visit(global offset or -1 outside, offset in
  // `memory`).
  template <typename Visit>
  void ForEachInBox(const BoundMap& map, const std::vector<int64_t>& coordinates,
                    const LaneMemory& memory, int64_t offset, Visit visit);

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
  std::map<std::string, BoundMap> maps_;
};

}  // namespace hackc::interp

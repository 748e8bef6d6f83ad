// SPDX-License-Identifier: MIT
#include "compiler/ir/loop_verify.h"

#include "compiler/ir/stmt_verify.h"

namespace hackc::ir {
namespace {

class LoopVerifier : public StmtVerifier {
 public:
  explicit LoopVerifier(const Function& fn)
      : StmtVerifier({.name = "loop",
                      .holds = IsA<For, Let, Accumulator, Accumulate, Store>,
                      .loops = {LoopKind::kSequential}},
                     fn) {}

 protected:
  void Check(const Stmt& s) override {
    if (const For* loop = As<For>(s); loop && !loop->digits.empty())
      Error("digits", "a sequential loop has no digits");
    if (const Accumulator* acc = As<Accumulator>(s); acc && !acc->layout.empty()) {
      Error("layout", "a state has no layout at Loop level");
    }
    if (const Store* store = As<Store>(s);
        store && (store->engine != CopyEngine::kRegisters || store->cache != CacheHint::kNormal)) {
      Error("engine", "a copy engine is chosen at Tile level");
    }
  }

 private:
  void Error(RuleIn<kLoopRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }
};

}  // namespace

std::vector<std::string> VerifyLoop(const LoopFn& fn) { return LoopVerifier(fn.fn).Run(); }

}  // namespace hackc::ir

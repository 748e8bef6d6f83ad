// SPDX-License-Identifier: MIT
// Bytes of a Program as a client takes them: refused by CheckProgram, or safe to walk, name and
// evaluate at the ends of its symbols' ranges.
#include "client/runtime/program_check.h"
#include "client/runtime/program_files.h"
#include "compiler/support/cat.h"
#include "tests/fuzz/proto_mutation.h"

namespace hackc::fuzz {
namespace {

using client::SymbolValues;

template <typename Symbols>
void Override(const Symbols& symbols, bool largest, SymbolValues& values) {
  for (const v1::Symbol& symbol : symbols) {
    values[symbol.name()] = largest ? symbol.max() : symbol.min();
  }
}

void WalkSteps(const v1::Program& program,
               const google::protobuf::RepeatedPtrField<v1::Step>& steps,
               const std::vector<int>& slots, const SymbolValues& values) {
  for (const client::FlatLaunch& flat : client::Flatten(steps)) {
    const v1::Kernel& kernel = program.kernels(static_cast<int>(flat.launch->kernel()));
    for (const v1::DimExpr& extent : kernel.grid()) (void)client::Evaluate(extent, values);
    for (const v1::BufferRef& argument : flat.launch->args()) {
      const v1::Buffer& buffer = program.buffers(static_cast<int>(argument.buffer()));
      (void)client::Evaluate(argument.offset(), values);
      const int slot = slots[argument.buffer()];
      if (client::IsCallerBound(buffer) &&
          (slot < 0 || slot + static_cast<int64_t>(flat.iteration % client::Repetitions(buffer)) >=
                           slots.back())) {
        Violation("a launch's argument has a slot", program.ShortDebugString());
      }
    }
  }
}

void Walk(const v1::Program& program) {
  const std::vector<int> slots = client::CallerSlots(program);
  (void)client::KernelFileNames(program).ok();
  for (bool largest : {false, true}) {
    SymbolValues values;
    Override(program.symbols(), largest, values);
    for (const v1::Buffer& buffer : program.buffers()) {
      const auto bytes = client::EvaluateBytes(buffer, values);
      if (bytes.ok() && *bytes < 0) {
        Violation("bytes are not negative", buffer.ShortDebugString());
      }
      for (const v1::DimExpr& extent : buffer.shape()) {
        if (client::FormulaText(extent).empty() && extent.symbol().empty() &&
            extent.op() != v1::DimExpr::SYMBOL) {
          Violation("a formula has a text", extent.ShortDebugString());
        }
      }
      (void)client::TensorName(buffer, client::Repetitions(buffer) - 1);
    }
    WalkSteps(program, program.prepare(), slots, {});
    for (const v1::EntryPoint& entry : program.entry_points()) {
      SymbolValues own = values;
      Override(entry.symbols(), largest, own);
      (void)client::Evaluate(entry.workspace_bytes(), own);
      WalkSteps(program, entry.steps(), slots, own);
    }
  }
}

}  // namespace

std::string Mutate(std::string input, Random& random) {
  return MutateSerialized<v1::Program>(input, random);
}

}  // namespace hackc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hackc::v1::Program program;
  if (!program.ParseFromArray(data, static_cast<int>(size))) return 0;
  const absl::Status status = hackc::client::CheckProgram(program);
  if (!status.ok()) {
    if (status.code() != absl::StatusCode::kInvalidArgument) {
      hackc::fuzz::Violation("a bad program is INVALID_ARGUMENT", status.ToString());
    }
    return 0;
  }
  hackc::fuzz::Walk(program);
  return 0;
}

// SPDX-License-Identifier: MIT
// What BuildKernel needs of a module with one segment, so that any choice of fusion can be tried.
#pragma once

#include "compiler/passes/loop/loop_builder.h"

namespace hackc::test {

inline passes::SegmentValues ValuesOf(const ir::TensorModule& module) {
  passes::SegmentValues values;
  values.symbols = module.symbols;
  for (const ir::SourceDecl& source : module.sources) {
    values.types[source.name] = source.type;
    values.source_kinds[source.name] = source.kind;
  }
  for (const ir::TensorOp& op : module.segments[0].ops) {
    values.types[op.out] = op.type;
    values.ops[op.out] = &op;
  }
  return values;
}

}  // namespace hackc::test

// SPDX-License-Identifier: MIT
// Verifies Tensor IR: the module's rules (module_verify.h, M1 to M12) and those of its operations.
//
//   T1 axes       one output axis for each dim of the value, of its extent
//   T2 axis       axis names are names, unique within an operation; extents are i32 over symbols,
//                 those of reduced axes may also use the output's axes and loads
//   T3 scope      expressions use the operation's axes, declared symbols and known values only, and
//                 nothing of Kernel level (thread indices, shuffles); they nest at most
//                 kMaxExprDepth levels
//   T4 load       a load has the value's dtype, and as many indices as it has dims
//   T5 dtype      a map's value, a view's and a gather's source and a scatter's value have the
//                 dtype of what they define; operands are f32 and so are reduces and contracts;
//                 nothing is computed in bf16 and f16
//   T6 bounds     every index is provably within the value, given the axes' extents and the
//                 conditions of selects
//   T7 reduce     as many operands as the monoid takes; at least one reduced axis
//   T8 view       a view's source is a load whose indices hold no load; a gather's is a load with
//                 one that does
//   T9 scatter    the state is a kState source or an earlier scatter of one, updated once, and the
//                 output has its type; as many indices as it has dims. After an update the old name
//                 is not read
//   T10 label     labels are names
//   Not checked: that two updates of one scatter never meet.
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/rule.h"
#include "compiler/ir/tensor.h"

namespace hackc::ir {

inline constexpr auto kTensorRules = Rules('T', {"axes", "axis", "scope", "load", "dtype", "bounds",
                                                 "reduce", "view", "scatter", "label"});

// All errors, as ErrorText of rule.h writes them; empty when the module is good.
std::vector<std::string> VerifyTensor(const TensorModule& module);

}  // namespace hackc::ir

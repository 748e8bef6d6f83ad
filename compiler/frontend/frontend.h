// SPDX-License-Identifier: MIT
// The front end: a Hugging Face config.json and the shapes wanted become Graph IR.
//
//   FrontendOptions options;
//   options.seq = {1, 2048};
//   HACKC_ASSIGN_OR_RETURN(ir::GraphModule graph, BuildGraph(config_json, options));
//
// The graph takes input `input_ids` i32[batch, seq] and gives `logits` f32[batch, seq, vocab]. With
// options.past.max > 0 each layer also keeps states "layers.N.key_cache" and
// "layers.N.value_cache", [batch, past.max + seq.max, key/value heads, head_dim]. Input
// `past_lengths` i32[batch] says how many tokens of each sequence they hold, symbol `past` how many
// at most.
//
// With options.page_size > 0 the caches are [pages, page_size, key/value heads, head_dim], and
// input `page_table` i32[batch, ceil((past.max + seq.max) / page_size)] says where the pages of
// each sequence lie. With options.last_logits the logits are [batch, 1, vocab], those at positions
// `last_positions` i32[batch] of a call.
//
// Errors are INVALID_ARGUMENT and start with the path of the field: "config.hidden_size: expected
// ...". Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/frontend/shapes.h"
#include "compiler/ir/graph.h"

namespace hackc::frontend {

struct FrontendOptions : Shapes {
  std::optional<ir::DType> dtype;  // storage; absent: the config's, else bfloat16
};

absl::StatusOr<ir::GraphModule> BuildGraph(const std::string& config_json,
                                           const FrontendOptions& options);

}  // namespace hackc::frontend

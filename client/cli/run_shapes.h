// SPDX-License-Identifier: MIT
// The shapes that `run` compiles a model for: room for the prompts and what follows them, rounded
// up so that prompts of like lengths share one program.
//
//   HACKC_RETURN_IF_ERROR(ChooseRunShapes(/*sequences=*/1, /*prompt=*/900, /*tokens=*/64, &model));
//   model.seq().max() == 1024 && model.past().max() == 1024
//
// A dynamic rope changes with the length of a call beyond the config's max_position_embeddings.
// There the front end takes one sequence, and only more tokens in a call than the cache holds
// before it, so that no prompt has to be cut.
//
// Thread safety: a pure function of its arguments.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "hackc/v1/model.pb.h"

namespace hackc::client {

// Sets batch, seq and past for prompts of up to `prompt` tokens and `tokens` more each.
// INVALID_ARGUMENT for several sequences that a dynamic rope takes only one by one.
absl::Status ChooseRunShapes(int64_t sequences, int64_t prompt, int64_t tokens,
                             v1::ModelDescription* model);

}  // namespace hackc::client

// SPDX-License-Identifier: MIT
// Writes a decoder as Graph IR: segment `embed`, one segment for each group of equal layers,
// segment `head`.
//
//   ir::GraphModule graph = BuildDecoder(decoder, options);
//
// Thread safety: a pure function.
#pragma once

#include "compiler/frontend/decoder_config.h"
#include "compiler/frontend/frontend.h"
#include "compiler/ir/graph.h"

namespace hackc::frontend {

ir::GraphModule BuildDecoder(const DecoderConfig& decoder, const FrontendOptions& options);

}  // namespace hackc::frontend

// SPDX-License-Identifier: MIT
#include "compiler/frontend/frontend.h"

#include "absl/status/status.h"
#include "base/json_text.h"
#include "compiler/frontend/config_reader.h"
#include "compiler/frontend/decoder_builder.h"
#include "compiler/frontend/decoder_config.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::frontend {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr int64_t kMaxExtent = int64_t{1} << 20;
// Of batch x seq: offsets of activations fit 64 bits by far.
constexpr int64_t kMaxTokens = int64_t{1} << 24;

absl::Status CheckRange(const ShapeRange& range, const std::string& name, int64_t least) {
  if (range.min >= least && range.min <= range.max && range.max <= kMaxExtent) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(Cat(name, ": expected ", least, " <= min <= max <= ",
                                        kMaxExtent, ", got ", range.min, "..", range.max));
}

absl::Status CheckOptions(const FrontendOptions& options) {
  HACKC_RETURN_IF_ERROR(CheckRange(options.batch, "batch", 1));
  HACKC_RETURN_IF_ERROR(CheckRange(options.seq, "seq", 1));
  HACKC_RETURN_IF_ERROR(CheckRange(options.past, "past", 0));
  if (options.batch.max * options.seq.max > kMaxTokens) {
    return absl::InvalidArgumentError(Cat("seq: expected batch.max x seq.max of at most ",
                                          kMaxTokens, " tokens, got ",
                                          options.batch.max * options.seq.max));
  }
  const int64_t longest = options.past.max > 0 ? options.past.max + options.seq.max : 0;
  if (options.page_size < 0 || options.page_size > longest) {
    return absl::InvalidArgumentError(
        Cat("page_size: expected 0 (no pages) to past.max + seq.max where there is a cache, ",
            longest, ", got ", options.page_size));
  }
  if (options.layers < 0) {
    return absl::InvalidArgumentError(
        Cat("layers: expected 0 (all) or a positive number, got ", options.layers));
  }
  const bool storage = !options.dtype || *options.dtype == ir::DType::kF32 ||
                       *options.dtype == ir::DType::kBF16 || *options.dtype == ir::DType::kF16;
  if (!storage) {
    return absl::InvalidArgumentError(
        Cat("dtype: expected float32, bfloat16 or float16, got ", ir::Name(*options.dtype)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ir::GraphModule> BuildGraph(const std::string& config_json,
                                           const FrontendOptions& options) {
  HACKC_RETURN_IF_ERROR(CheckOptions(options));
  HACKC_ASSIGN_OR_RETURN(const nlohmann::json config,
                         ParseJson(config_json, {.bytes = kMaxConfigBytes}, "config"));
  if (!config.is_object()) {
    return absl::InvalidArgumentError(
        Cat("config: expected a JSON object, got ", ShortText(config)));
  }
  HACKC_ASSIGN_OR_RETURN(const DecoderConfig decoder, ReadDecoderConfig(config, options));
  return BuildDecoder(decoder, options);
}

}  // namespace hackc::frontend

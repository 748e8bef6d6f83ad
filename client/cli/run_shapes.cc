// SPDX-License-Identifier: MIT
#include "client/cli/run_shapes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hackc::client {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// The least that an architecture takes where its config does not say.
constexpr int64_t kDefaultPositions = 2048;

int64_t RoundUp(int64_t count) {
  int64_t result = 16;
  while (result < count) result *= 2;
  return result;
}

const Value& Field(const Struct& object, const char* key) {
  const auto found = object.fields().find(key);
  return found == object.fields().end() ? Value::default_instance() : found->second;
}

bool HasDynamicRope(const Struct& config) {
  for (const char* object : {"rope_parameters", "rope_scaling"}) {
    for (const char* key : {"rope_type", "type"}) {
      if (Field(Field(config, object).struct_value(), key).string_value() == "dynamic") return true;
    }
  }
  return false;
}

void SetRange(int64_t min, int64_t max, v1::Range* range) {
  range->set_min(min);
  range->set_max(max);
}

}  // namespace

absl::Status ChooseRunShapes(int64_t sequences, int64_t prompt, int64_t tokens,
                             v1::ModelDescription* model) {
  int64_t seq = RoundUp(prompt), past = RoundUp(prompt + tokens);
  const double given = Field(model->config(), "max_position_embeddings").number_value();
  const int64_t plain =
      given >= 1 && given < 1e15 ? static_cast<int64_t>(given) : kDefaultPositions;
  if (HasDynamicRope(model->config()) && seq + past > plain) {
    // In the cache before the last call, which feeds one token; the last token is not fed. A cache
    // of nothing is none.
    const int64_t held = std::max<int64_t>(prompt + tokens - 2, 1);
    if (held + (sequences > 1 ? 1 : prompt) <= plain) {
      seq = std::min(seq, plain - held);  // several prompts are fed in parts
      past = std::min(past, plain - seq);
    } else if (sequences == 1) {
      seq = past;
      past = seq - 1;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--ids: ", sequences, " sequences of up to ", prompt, " tokens and ", tokens,
                       " more pass the ", plain,
                       " positions up to which the model's dynamic rope takes several ",
                       "at once; expected one --ids, or fewer tokens"));
    }
  }
  SetRange(sequences, sequences, model->mutable_batch());
  SetRange(1, seq, model->mutable_seq());
  SetRange(0, past, model->mutable_past());
  return absl::OkStatus();
}

}  // namespace hackc::client

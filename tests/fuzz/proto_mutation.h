// SPDX-License-Identifier: MIT
// Changes a protobuf message by its descriptor: a field set, cleared, repeated, nested, or taken
// from elsewhere in the message. What comes out always parses.
//
//   MutateMessage(program, random);
//
// Thread safety: pure but for its arguments.
#pragma once

#include <google/protobuf/message.h>

#include "tests/fuzz/fuzz_target.h"

namespace hackc::fuzz {

void MutateMessage(google::protobuf::Message& message, Random& random);

// Bytes of a message, mutated as such a message where they parse, as bytes otherwise.
template <typename Message>
std::string MutateSerialized(const std::string& bytes, Random& random) {
  Message message;
  if (random.OneIn(16) || !message.ParseFromString(bytes)) return MutateBytes(bytes, random);
  for (size_t rounds = 1 + random.Below(3); rounds > 0; --rounds) MutateMessage(message, random);
  return message.SerializeAsString();
}

}  // namespace hackc::fuzz

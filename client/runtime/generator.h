// SPDX-License-Identifier: MIT
// Sequences of tokens, of unequal lengths, through a program with a key/value cache: owns the
// cache, the workspace and the tensors of a call, splits long prompts into calls that the program
// allows, pads shorter sequences, and takes the entry point "decode" for single tokens.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator,
//                          Generator::Create(*runtime, /*sequences=*/2));
//   // Logits of the next tokens:
//   HACKC_ASSIGN_OR_RETURN(Generator::Logits logits, generator->Feed({{1, 2, 3}, {4, 5}}));
//   HACKC_ASSIGN_OR_RETURN(int64_t token, PickToken(logits[1], /*temperature=*/0, &random));
//   HACKC_ASSIGN_OR_RETURN(logits, generator->Feed({{}, {token}}));
//
// A paged cache gets as many pages as all sequences need at their longest.
// Must not outlive its runtime. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/runtime/device_memory.h"
#include "client/runtime/runtime.h"

namespace hackc::client {

class Generator {
 public:
  using Tokens = std::vector<std::vector<int64_t>>;  // of each sequence
  using Logits = std::vector<std::vector<float>>;

  // FAILED_PRECONDITION for a program without a cache, INVALID_ARGUMENT for more sequences than it
  // is compiled for. The runtime must be prepared.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(Runtime& runtime, int64_t sequences = 1);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Appends tokens to each sequence and waits for the logits that follow its last. A sequence that
  // gets none stays as it is, and so has no logits. OUT_OF_RANGE when the cache that the program
  // was compiled for is full.
  absl::StatusOr<Logits> Feed(const Tokens& tokens);

  int64_t length(size_t sequence) const { return lengths_[sequence]; }

 private:
  explicit Generator(Runtime& runtime) : runtime_(runtime) {}
  // One call: tokens from first[b] on, counts[b] of them; writes the logits of those that have
  // some.
  absl::Status Step(const Tokens& tokens, const std::vector<int64_t>& first,
                    const std::vector<int64_t>& counts, Logits* logits);
  // The tensor's memory, at least so large; contents are lost when it grows.
  absl::StatusOr<CUdeviceptr> Room(const std::string& name, int64_t bytes);
  absl::Status Upload(const TensorInfo& info, CUdeviceptr address,
                      const std::vector<int64_t>& values);
  absl::StatusOr<std::vector<float>> Row(const TensorInfo& info, CUdeviceptr address, int64_t row);

  struct Memory {
    DeviceMemory memory;
    int64_t bytes = -1;
  };
  Runtime& runtime_;
  std::map<std::string, Memory> memory_;  // by tensor; "" is the workspace
  std::vector<int64_t> lengths_;
  int64_t longest_call_ = 1;
  int64_t most_past_ = 0;
  bool has_decode_ = false;
};

// The likeliest token when `temperature` is 0, else one drawn with probability softmax(logits /
// temperature). INTERNAL when a logit is NaN.
absl::StatusOr<int64_t> PickToken(const std::vector<float>& logits, double temperature,
                                  std::mt19937_64* random);

}  // namespace hackc::client

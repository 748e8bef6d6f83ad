// SPDX-License-Identifier: MIT
// One sequence of tokens through a program with a key/value cache: owns the cache, the workspace and the
// tensors of a call, splits long prompts into calls that the program allows, and takes the entry point
// "decode" for single tokens.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator, Generator::Create(*runtime));
//   HACKC_ASSIGN_OR_RETURN(std::vector<float> logits, generator->Feed({1, 2, 3}));   // of the next token
//   HACKC_ASSIGN_OR_RETURN(int64_t token, PickToken(logits, /*temperature=*/0, &random));
//   HACKC_ASSIGN_OR_RETURN(logits, generator->Feed({token}));
//
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
  // FAILED_PRECONDITION for a program without a cache. The runtime must be prepared.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(Runtime& runtime);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Appends tokens to the sequence and waits for the logits that follow the last. OUT_OF_RANGE when the cache
  // that the program was compiled for is full.
  absl::StatusOr<std::vector<float>> Feed(const std::vector<int64_t>& tokens);

  int64_t length() const { return past_; }

 private:
  explicit Generator(Runtime& runtime) : runtime_(runtime) {}
  absl::StatusOr<std::vector<float>> Step(const int64_t* tokens, int64_t count);
  // The tensor's memory, at least so large; contents are lost when it grows.
  absl::StatusOr<CUdeviceptr> Room(const std::string& name, int64_t bytes);
  absl::Status Upload(const TensorInfo& info, CUdeviceptr address, const int64_t* tokens,
                      int64_t count);
  absl::StatusOr<std::vector<float>> LastRow(const TensorInfo& info, CUdeviceptr address);

  struct Memory {
    DeviceMemory memory;
    int64_t bytes = -1;
  };
  Runtime& runtime_;
  std::map<std::string, Memory> memory_;  // by tensor; "" is the workspace
  int64_t past_ = 0;
  int64_t longest_call_ = 1;
  int64_t most_past_ = 0;
  bool has_decode_ = false;
};

// The likeliest token when `temperature` is 0, else one drawn with probability softmax(logits / temperature).
// INTERNAL when a logit is NaN.
absl::StatusOr<int64_t> PickToken(const std::vector<float>& logits, double temperature,
                                  std::mt19937_64* random);

}  // namespace hackc::client

// SPDX-License-Identifier: MIT
// A program of three layers over four channels whose result is simple arithmetic, with every part
// of the contract in use: prepare, repetition, constants, workspace at symbolic offsets, symbols as
// parameters.
//
//   logits[t, c] = (ids[t] + sum over layers of 2 * w[layer, c]) * final[c] + scale[c]
//
//   v1::Program program = TinyProgram();
//   FakeGpu gpu(program);
//   InstallTinyKernels(&gpu);
//
// Thread safety: pure functions.
#pragma once

#include "hackc/v1/program.pb.h"
#include "tests/client/fake_gpu.h"

namespace hackc::client {

inline constexpr int kTinyLayers = 3;
inline constexpr int kTinyChannels = 4;
inline constexpr int kTinyMaxSeq = 64;

// Buffers by id.
enum TinyBuffer { kIds, kLogits, kWeight, kPrepared, kScale, kHidden, kNext, kFinal };
// Kernels by index.
enum TinyKernel { kDouble, kEmbed, kLayer, kCopy, kHead };

v1::Program TinyProgram();
void InstallTinyKernels(FakeGpu* gpu);

}  // namespace hackc::client

// SPDX-License-Identifier: MIT
// A kernel and its reference as a Program that the client's runtime runs, so that what is measured
// is launched exactly as a client launches it.
//
//   v1::Program program = OneKernelProgram(call, /*sets=*/3, /*launches=*/12);
//
// Entry points: "candidate" launches the kernel on set 0; "reference" its reference on the same
// inputs and outputs of its own; "timed" the kernel `launches` times, each on the next of the sets.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "hackc/v1/program.pb.h"
#include "hackc/v1/worker.pb.h"

namespace hackc::server {

v1::Program OneKernelProgram(const v1::worker::BenchCall& call, int sets, int launches);

// The tensor of buffer parameter `argument` in a set: "set0.x"; the reference's own are in set -1.
std::string TensorOf(const v1::worker::BenchCall& call, int set, int argument);

}  // namespace hackc::server

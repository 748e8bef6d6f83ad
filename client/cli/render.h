// SPDX-License-Identifier: MIT
// What a compile brought, gathered from its events, as a table for people and as JSON for programs.
//
//   CompileResult result;
//   compiler.Compile(request, [&](const v1::CompileEvent& event) { result.Add(event); });
//   result.Finish();
//   std::cout << ResultTable(result);
//
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "hackc/v1/compiler.pb.h"

namespace hackc::client {

struct CompileResult {
  std::string model;                     // the name asked for; a program knows only its family's
  std::vector<v1::KernelReady> kernels;  // after Finish() in the program's order
  v1::ProgramReady program;
  v1::Report report;

  void Add(const v1::CompileEvent& event);
  void Finish();
};

std::string ResultTable(const CompileResult& result);

// One object: model, arch, dtype, program_digest, compile_ms, cache {hits, misses, program},
// kernels [{name, computes, key, digest, entry, cubin_bytes, registers, shared_bytes, spill_bytes,
// cache, grid, grid_at_max, block, times ...}], times, and the server's timing when it has a GPU.
std::string ResultJson(const CompileResult& result);

}  // namespace hackc::client

// SPDX-License-Identifier: MIT
// The device functions that generated kernels call: conversions of 16-bit floats and named wrappers
// of the PTX instructions that C++ cannot say. No CUDA header is needed, which spares NVRTC most of
// its time.
//
//   Prelude prelude;
//   prelude.Use("float_to_bf16");
//   prelude.Text();   // the definitions used, in the order of the table
//
// Thread safety: an object belongs to one thread; the table is constant.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::codegen {

class Prelude {
 public:
  // Marks an entry, and what it builds on, as used, and returns its name. HACKC_CHECK that it
  // exists.
  std::string Use(std::string_view name);
  // The wrapper of one form of wgmma; tables of them would be longer than the kernels.
  std::string UseWgmma(const ir::Wgmma& n, bool a_in_registers);
  std::string Text() const;

  // All names that the table defines; generated variables must keep clear of them.
  static std::vector<std::string_view> Names();

 private:
  std::set<std::string_view> used_;
  std::map<std::string, std::string> wgmma_;  // text by name
};

}  // namespace hackc::codegen

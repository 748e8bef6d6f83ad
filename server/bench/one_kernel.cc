// SPDX-License-Identifier: MIT
#include "server/bench/one_kernel.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "client/runtime/program_check.h"

namespace hackc::server {
namespace {

class Builder {
 public:
  explicit Builder(const v1::worker::BenchCall& call) : call_(call) {
    program_.set_format_version("1");
    program_.set_model("bench");
    program_.set_arch(call.kernel().arch());
    *program_.mutable_symbols() = call.kernel().valid();
    *program_.add_kernels() = call.kernel();
    *program_.add_kernels() = call.reference();
  }

  void AddEntry(const std::string& name, int kernel, int first_set, int sets, int launches) {
    v1::EntryPoint* entry = program_.add_entry_points();
    entry->set_name(name);
    for (int i = 0; i < launches; ++i) {
      v1::Launch* launch = entry->add_steps()->mutable_launch();
      launch->set_kernel(kernel);
      for (int a = 0; a < call_.uses().buffers_size(); ++a) {
        launch->add_args()->set_buffer(BufferOf(first_set + i % sets, a));
      }
    }
  }

  v1::Program Take() { return std::move(program_); }

 private:
  uint32_t BufferOf(int set, int argument) {
    const std::string name = TensorOf(call_, set, argument);
    const auto [found, is_new] = ids_.emplace(name, program_.buffers_size());
    if (is_new) {
      const v1::worker::BufferUse& use = call_.uses().buffers(argument);
      v1::Buffer* buffer = program_.add_buffers();
      buffer->set_id(found->second);
      buffer->set_name(name);
      buffer->set_kind(use.written() ? v1::Buffer::OUTPUT : v1::Buffer::INPUT);
      buffer->set_dtype(use.dtype());
      *buffer->mutable_shape() = use.shape();
    }
    return found->second;
  }

  const v1::worker::BenchCall& call_;
  v1::Program program_;
  std::map<std::string, uint32_t> ids_;
};

}  // namespace

v1::Program OneKernelProgram(const v1::worker::BenchCall& call, int sets, int launches) {
  Builder builder(call);
  builder.AddEntry("candidate", 0, 0, 1, 1);
  builder.AddEntry("reference", 1, -1, 1, 1);
  builder.AddEntry("timed", 0, 0, sets, launches);
  return builder.Take();
}

std::string TensorOf(const v1::worker::BenchCall& call, int set, int argument) {
  if (set < 0 && !call.uses().buffers(argument).written()) set = 0;  // the same inputs
  const std::string where = set < 0 ? "reference" : absl::StrCat("set", set);
  int place = 0;
  for (const v1::Param& param : call.kernel().params()) {
    if (client::TakesArgument(param) && place++ == argument) {
      return absl::StrCat(where, ".", param.name());
    }
  }
  return absl::StrCat(where, ".", argument);
}

}  // namespace hackc::server

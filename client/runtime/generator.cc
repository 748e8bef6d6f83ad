// SPDX-License-Identifier: MIT
#include "client/runtime/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/runtime/float_convert.h"
#include "client/runtime/program_check.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

constexpr char kPrefill[] = "prefill", kDecode[] = "decode";

const v1::Symbol* FindSymbol(const v1::Program& program, const std::string& name) {
  for (const v1::Symbol& symbol : program.symbols()) {
    if (symbol.name() == name) return &symbol;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(Runtime& runtime) {
  const v1::Program& program = runtime.program();
  const v1::Symbol* past = FindSymbol(program, "past");
  const v1::Symbol* seq = FindSymbol(program, "seq");
  if (past == nullptr || seq == nullptr) {
    return absl::FailedPreconditionError(
        "the program has no key/value cache; compile it with --past 0..N");
  }
  if (past->min() > 0 || seq->min() > 1) {
    return absl::FailedPreconditionError(
        "the program must be compiled for past from 0 and seq from 1");
  }
  std::unique_ptr<Generator> generator(new Generator(runtime));
  generator->longest_call_ = seq->max();
  generator->most_past_ = past->max();
  for (const v1::EntryPoint& entry : program.entry_points()) {
    generator->has_decode_ |= entry.name() == kDecode;
  }
  return generator;
}

Generator::~Generator() {
  ScopedContext scope(runtime_.driver(), runtime_.context());
  memory_.clear();
}

absl::StatusOr<std::vector<float>> Generator::Feed(const std::vector<int64_t>& tokens) {
  if (tokens.empty()) return absl::InvalidArgumentError("tokens: expected at least one");
  std::vector<float> logits;
  for (size_t done = 0; done < tokens.size();) {
    int64_t count = std::min<int64_t>(longest_call_, tokens.size() - done);
    if (past_ > most_past_) {
      return absl::OutOfRangeError(absl::StrCat("the sequence has ", past_,
                                                " tokens, the program is compiled for at most ",
                                                most_past_, " in the cache"));
    }
    HACKC_ASSIGN_OR_RETURN(logits, Step(tokens.data() + done, count));
    past_ += count;
    done += count;
  }
  return logits;
}

absl::StatusOr<std::vector<float>> Generator::Step(const int64_t* tokens, int64_t count) {
  ScopedContext scope(runtime_.driver(), runtime_.context());
  HACKC_RETURN_IF_ERROR(scope.status());
  Call call;
  call.entry = count == 1 && has_decode_ ? kDecode : kPrefill;
  for (const v1::Symbol& symbol : runtime_.program().symbols()) {
    call.symbols[symbol.name()] = symbol.min();
  }
  call.symbols["batch"] = 1;
  call.symbols["seq"] = count;
  call.symbols["past"] = past_;
  HACKC_ASSIGN_OR_RETURN(std::vector<TensorInfo> infos, runtime_.Tensors(call.entry, call.symbols));
  const TensorInfo* output = nullptr;
  for (const TensorInfo& info : infos) {
    HACKC_ASSIGN_OR_RETURN(CUdeviceptr address, Room(info.name, info.bytes));
    call.tensors[info.name] = {address, info.bytes};
    if (info.kind == v1::Buffer::INPUT) {
      HACKC_RETURN_IF_ERROR(Upload(info, address, tokens, count));
    }
    if (info.kind == v1::Buffer::OUTPUT && info.name == "logits") output = &info;
  }
  if (output == nullptr || output->shape.empty()) {
    return absl::FailedPreconditionError("the program has no output logits");
  }
  // An embedding is read at whatever row it is told.
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= output->shape.back()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", tokens[i], " is outside the vocabulary of ", output->shape.back()));
    }
  }
  HACKC_ASSIGN_OR_RETURN(int64_t bytes, runtime_.WorkspaceBytes(call.entry, call.symbols));
  HACKC_ASSIGN_OR_RETURN(CUdeviceptr workspace, Room("", bytes));
  call.workspace = {workspace, bytes};
  HACKC_RETURN_IF_ERROR(runtime_.Run(call, nullptr));
  return LastRow(*output, call.tensors.at(output->name).address);
}

absl::StatusOr<CUdeviceptr> Generator::Room(const std::string& name, int64_t bytes) {
  Memory& room = memory_[name];
  if (room.bytes < bytes) {
    room = {};
    HACKC_ASSIGN_OR_RETURN(room.memory, DeviceMemory::Allocate(runtime_.driver(), bytes,
                                                               name.empty() ? "workspace" : name));
    room.bytes = bytes;
  }
  return room.memory.address();
}

absl::Status Generator::Upload(const TensorInfo& info, CUdeviceptr address, const int64_t* tokens,
                               int64_t count) {
  const int64_t width = ElementBytes(info.dtype);
  if (info.name != "input_ids" || info.bytes != count * width ||
      (info.dtype != v1::DTYPE_INT32 && info.dtype != v1::DTYPE_INT64)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the program's input ", info.name, " is not the tokens of one sequence"));
  }
  std::string bytes(info.bytes, '\0');
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(&bytes[i * width], &tokens[i], width);  // little-endian: the low bytes
  }
  return runtime_.driver().Check(
      runtime_.driver().MemcpyHostToDevice(address, bytes.data(), bytes.size()),
      "upload of input_ids");
}

absl::StatusOr<std::vector<float>> Generator::LastRow(const TensorInfo& info, CUdeviceptr address) {
  const int64_t width = ElementBytes(info.dtype);
  const int64_t vocabulary = info.shape.empty() ? 0 : info.shape.back();
  if (vocabulary <= 0 || info.bytes < vocabulary * width) {
    return absl::FailedPreconditionError("the program's logits are empty");
  }
  std::string bytes(vocabulary * width, '\0');
  // On the default stream, as the launches are: waits for them.
  HACKC_RETURN_IF_ERROR(runtime_.driver().Check(
      runtime_.driver().MemcpyDeviceToHost(
          bytes.data(), address + static_cast<CUdeviceptr>(info.bytes - vocabulary * width),
          bytes.size()),
      "download of logits"));
  std::vector<float> logits(vocabulary);
  HACKC_RETURN_IF_ERROR(
      ConvertFloats(info.dtype, bytes.data(), v1::DTYPE_FLOAT32, logits.data(), vocabulary));
  return logits;
}

absl::StatusOr<int64_t> PickToken(const std::vector<float>& logits, double temperature,
                                  std::mt19937_64* random) {
  if (logits.empty()) return absl::InvalidArgumentError("logits: empty");
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      return absl::InternalError(absl::StrCat("the logit of token ", i, " is not a number"));
    }
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return best - logits.begin();
  std::vector<double> weights;
  for (float logit : logits) weights.push_back(std::exp((logit - *best) / temperature));
  return std::discrete_distribution<int64_t>(weights.begin(), weights.end())(*random);
}

}  // namespace hackc::client

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

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(Runtime& runtime, int64_t sequences) {
  const v1::Program& program = runtime.program();
  const v1::Symbol* batch = FindSymbol(program, "batch");
  const v1::Symbol* past = FindSymbol(program, "past");
  const v1::Symbol* seq = FindSymbol(program, "seq");
  if (batch == nullptr || past == nullptr || seq == nullptr) {
    return absl::FailedPreconditionError(
        "the program has no key/value cache; compile it with --past 0..N");
  }
  if (past->min() > 0 || seq->min() > 1) {
    return absl::FailedPreconditionError(
        "the program must be compiled for past from 0 and seq from 1");
  }
  if (sequences < batch->min() || sequences > batch->max()) {
    return absl::InvalidArgumentError(absl::StrCat("sequences: got ", sequences,
                                                   ", the program is compiled for batch ",
                                                   batch->min(), "..", batch->max()));
  }
  std::unique_ptr<Generator> generator(new Generator(runtime));
  generator->lengths_.assign(sequences, 0);
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

absl::StatusOr<Generator::Logits> Generator::Feed(const Tokens& tokens) {
  if (tokens.size() != lengths_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tokens: expected those of ", lengths_.size(),
                                                   " sequences, got ", tokens.size()));
  }
  Logits logits(tokens.size());
  std::vector<int64_t> done(tokens.size(), 0), counts(tokens.size());
  for (bool first = true;; first = false) {
    int64_t most = 0;
    for (size_t b = 0; b < tokens.size(); ++b) {
      counts[b] = std::min<int64_t>(longest_call_, tokens[b].size() - done[b]);
      most = std::max(most, counts[b]);
      if (counts[b] > 0 && lengths_[b] > most_past_) {
        return absl::OutOfRangeError(absl::StrCat("sequence ", b, " has ", lengths_[b],
                                                  " tokens, the program is compiled for at most ",
                                                  most_past_, " in the cache"));
      }
    }
    if (most == 0 && first) return absl::InvalidArgumentError("tokens: expected at least one");
    if (most == 0) return logits;
    HACKC_RETURN_IF_ERROR(Step(tokens, done, counts, &logits));
    for (size_t b = 0; b < tokens.size(); ++b) {
      lengths_[b] += counts[b];
      done[b] += counts[b];
    }
  }
}

absl::Status Generator::Step(const Tokens& tokens, const std::vector<int64_t>& first,
                             const std::vector<int64_t>& counts, Logits* logits) {
  ScopedContext scope(runtime_.driver(), runtime_.context());
  HACKC_RETURN_IF_ERROR(scope.status());
  const auto sequences = static_cast<int64_t>(counts.size());
  const int64_t seq = *std::max_element(counts.begin(), counts.end());
  std::map<std::string, std::vector<int64_t>> inputs;
  std::vector<int64_t>& ids = inputs["input_ids"];
  for (int64_t b = 0; b < sequences; ++b) {
    // A sequence that is full gets nothing more: what is written over its end is never read.
    inputs["past_lengths"].push_back(std::min(lengths_[b], most_past_));
    inputs["last_positions"].push_back(std::max<int64_t>(0, counts[b] - 1));
    const auto from = tokens[b].begin() + first[b];
    ids.insert(ids.end(), from, from + counts[b]);
    ids.resize((b + 1) * seq, 0);
  }
  Call call;
  call.entry = seq == 1 && has_decode_ ? kDecode : kPrefill;
  for (const v1::Symbol& symbol : runtime_.program().symbols()) {
    call.symbols[symbol.name()] = symbol.min();
  }
  call.symbols["batch"] = sequences;
  call.symbols["seq"] = seq;
  const std::vector<int64_t>& lengths = inputs["past_lengths"];
  call.symbols["past"] = *std::max_element(lengths.begin(), lengths.end());
  HACKC_ASSIGN_OR_RETURN(std::vector<TensorInfo> infos, runtime_.Tensors(call.entry, call.symbols));
  for (const TensorInfo& info : infos) {
    if (info.name != "page_table" || info.shape.empty()) continue;
    const int64_t pages = sequences * info.shape.back();
    for (int64_t page = 0; page < pages; ++page) inputs[info.name].push_back(page);
    call.symbols["pages"] = pages;
    HACKC_ASSIGN_OR_RETURN(infos, runtime_.Tensors(call.entry, call.symbols));
    break;
  }
  const TensorInfo* output = nullptr;
  for (const TensorInfo& info : infos) {
    if (info.kind == v1::Buffer::OUTPUT && info.name == "logits") output = &info;
  }
  if (output == nullptr || output->shape.empty()) {
    return absl::FailedPreconditionError("the program has no output logits");
  }
  // An embedding is read at whatever row it is told.
  for (int64_t id : ids) {
    if (id < 0 || id >= output->shape.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is outside the vocabulary of ", output->shape.back()));
    }
  }
  for (const TensorInfo& info : infos) {
    HACKC_ASSIGN_OR_RETURN(CUdeviceptr address, Room(info.name, info.bytes));
    call.tensors[info.name] = {address, info.bytes};
    if (info.kind == v1::Buffer::INPUT) {
      HACKC_RETURN_IF_ERROR(Upload(info, address, inputs[info.name]));
    }
  }
  HACKC_ASSIGN_OR_RETURN(int64_t bytes, runtime_.WorkspaceBytes(call.entry, call.symbols));
  HACKC_ASSIGN_OR_RETURN(CUdeviceptr workspace, Room("", bytes));
  call.workspace = {workspace, bytes};
  HACKC_RETURN_IF_ERROR(runtime_.Run(call, nullptr));
  const int64_t row_bytes = output->shape.back() * ElementBytes(output->dtype);
  const bool every = row_bytes > 0 && output->bytes == sequences * seq * row_bytes;
  for (int64_t b = 0; b < sequences; ++b) {
    if (counts[b] == 0) continue;
    HACKC_ASSIGN_OR_RETURN((*logits)[b], Row(*output, call.tensors.at(output->name).address,
                                             every ? b * seq + counts[b] - 1 : b));
  }
  return absl::OkStatus();
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

absl::Status Generator::Upload(const TensorInfo& info, CUdeviceptr address,
                               const std::vector<int64_t>& values) {
  const int64_t width = ElementBytes(info.dtype);
  if (info.bytes != static_cast<int64_t>(values.size()) * width ||
      (info.dtype != v1::DTYPE_INT32 && info.dtype != v1::DTYPE_INT64)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the program's input ", info.name, " is none of a decoder's"));
  }
  std::string bytes(info.bytes, '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&bytes[i * width], &values[i], width);  // little-endian: the low bytes
  }
  return runtime_.driver().Check(
      runtime_.driver().MemcpyHostToDevice(address, bytes.data(), bytes.size()),
      absl::StrCat("upload of ", info.name));
}

absl::StatusOr<std::vector<float>> Generator::Row(const TensorInfo& info, CUdeviceptr address,
                                                  int64_t row) {
  const int64_t vocabulary = info.shape.back(), width = ElementBytes(info.dtype);
  if (vocabulary <= 0 || info.bytes < (row + 1) * vocabulary * width) {
    return absl::FailedPreconditionError("the program's logits are not one row for each sequence");
  }
  std::string bytes(vocabulary * width, '\0');
  // On the default stream, as the launches are: waits for them.
  HACKC_RETURN_IF_ERROR(runtime_.driver().Check(
      runtime_.driver().MemcpyDeviceToHost(
          bytes.data(), address + static_cast<CUdeviceptr>(row * vocabulary * width), bytes.size()),
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

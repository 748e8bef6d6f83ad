// SPDX-License-Identifier: MIT
// What the server takes from outside, as bytes: a request's way up to its key, without sockets and
// without a build; a digest to fetch; and a kernel on its way to a worker. The first byte says
// which.
#include "cache/digest.h"
#include "compiler/compile.h"
#include "compiler/support/cat.h"
#include "server/convert.h"
#include "tests/fuzz/proto_mutation.h"

namespace hackc::fuzz {
namespace {

constexpr int kKinds = 4;

void Refused(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument || status.message().empty()) {
    Violation("a bad request is INVALID_ARGUMENT", status.ToString());
  }
}

void CheckModel(const v1::ModelDescription& model, const v1::Target& target) {
  const auto call = server::PlanCallFrom(model, target, "sm_90a");
  if (!call.ok()) return Refused(call.status());
  v1::worker::PlanCall copy;  // as a worker gets it
  if (!copy.ParseFromString(call->SerializeAsString())) {
    Violation("a call reads back", call->ShortDebugString());
  }
  const absl::StatusOr<CompileRequest> request = server::RequestFromProto(copy);
  if (!request.ok()) return Refused(request.status());
  const absl::StatusOr<KeyFields> fields = ProgramKeyFields(*request);
  if (!fields.ok()) Refused(fields.status());
}

void CheckSource(const v1::worker::KernelSource& message) {
  const absl::StatusOr<KernelSource> source = server::SourceFromProto(message);
  if (!source.ok()) return Refused(source.status());
  const v1::worker::KernelSource once = server::ToProto(*source);
  const absl::StatusOr<KernelSource> again = server::SourceFromProto(once);
  if (!again.ok() || server::SerializeDeterministic(server::ToProto(*again)) !=
                         server::SerializeDeterministic(once)) {
    Violation("a kernel's source reads back", once.ShortDebugString());
  }
}

template <typename Message, typename Check>
void With(const std::string& bytes, Check&& check) {
  Message message;
  if (message.ParseFromString(bytes)) check(message);
}

}  // namespace

std::string Mutate(std::string input, Random& random) {
  if (input.empty()) return std::string(1, static_cast<char>(random.Below(kKinds)));
  const std::string rest = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % kKinds) {
    case 0: return input[0] + MutateSerialized<v1::CompileRequest>(rest, random);
    case 1: return input[0] + MutateSerialized<v1::worker::KernelSource>(rest, random);
    case 2: return input[0] + MutateSerialized<v1::ExplainKeyRequest>(rest, random);
    default: return input[0] + MutateText(rest, random);
  }
}

}  // namespace hackc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hackc;        // NOLINT
  using namespace hackc::fuzz;  // NOLINT
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % kKinds) {
    case 0:
      With<v1::CompileRequest>(bytes, [](const v1::CompileRequest& request) {
        CheckModel(request.model(), request.target());
      });
      break;
    case 1: With<v1::worker::KernelSource>(bytes, CheckSource); break;
    case 2:
      With<v1::ExplainKeyRequest>(bytes, [](const v1::ExplainKeyRequest& request) {
        CheckModel(request.model(), request.target());
      });
      break;
    default: {
      const auto digest = cache::Digest::Parse(bytes);
      if (digest.ok() && digest->ToString() != bytes) Violation("a digest reads back", bytes);
    }
  }
  return 0;
}

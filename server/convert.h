// SPDX-License-Identifier: MIT
// The one place that copies between the compiler's plain structs and protobuf messages. What the
// compiler makes only travels outward (Program, Plan, CompiledKernel, Reference); what a worker is
// asked for travels back in (CompileRequest, KernelSource), so only those have a FromProto.
//
//   v1::Program message = ToProto(plan.program);
//   ASSIGN(CompileRequest request, RequestFromProto(call));  // errors have the field's path
//
// Formulas that are the constant 0 are left unset where a field is optional. Thread safety: pure
// functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/compile.h"
#include "compiler/program/program.h"
#include "hackc/v1/compiler.pb.h"
#include "hackc/v1/program.pb.h"
#include "hackc/v1/worker.pb.h"

namespace hackc::server {

v1::Program ToProto(const program::Program& program);
v1::Kernel ToProto(const program::Kernel& kernel);
v1::worker::KernelSource ToProto(const KernelSource& source);
v1::worker::PlanResult ToProto(const Plan& plan);
v1::worker::CompiledKernel ToProto(const CompiledKernel& kernel);
v1::worker::Reference ToProto(const Reference& reference);

absl::StatusOr<program::Kernel> KernelFromProto(const v1::Kernel& message);
absl::StatusOr<KernelSource> SourceFromProto(const v1::worker::KernelSource& message);
absl::StatusOr<CompileRequest> RequestFromProto(const v1::worker::PlanCall& call);

// What a client asks, as a call: the config turned into JSON text, the default arch filled in. The
// name is left out, since it is in no key and equal keys must give equal bytes.
absl::StatusOr<v1::worker::PlanCall> PlanCallFrom(const v1::ModelDescription& model,
                                                  const v1::Target& target,
                                                  const std::string& default_arch);

KeyFields KeyFieldsFromProto(
    const google::protobuf::RepeatedPtrField<v1::worker::KeyField>& fields);

// The serialisation whose sha256 is a message's digest: the same bytes for equal messages, also
// with maps.
std::string SerializeDeterministic(const google::protobuf::MessageLite& message);

}  // namespace hackc::server

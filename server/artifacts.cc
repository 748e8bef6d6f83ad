// SPDX-License-Identifier: MIT
#include "server/artifacts.h"

#include <algorithm>
#include <map>

#include "server/convert.h"
#include "server/log.h"

namespace hackc::server {
namespace {

const cache::BlobRef* FindRole(const cache::Action& action, std::string_view role) {
  for (const cache::BlobRef& blob : action.blobs) {
    if (blob.role == role) return &blob;
  }
  return nullptr;
}

}  // namespace

cache::Key MakeKey(std::string_view kind, const KeyFields& fields,
                   const std::string& nvrtc_version) {
  cache::KeyBuilder builder(kind);
  for (const auto& [name, value] : fields) builder.Add(name, value);
  return builder.Add("nvrtc", nvrtc_version).Build();
}

std::optional<StoredKernel> Artifacts::FindKernel(const cache::Key& key) {
  const absl::StatusOr<cache::Action> action = store_->GetAction(key.kind(), key.digest());
  if (!action.ok()) return std::nullopt;
  StoredKernel kernel;
  const cache::BlobRef* blob = FindRole(*action, "cubin");
  if (blob == nullptr || !kernel.facts.ParseFromString(action->value)) return std::nullopt;
  absl::StatusOr<std::string> cubin = store_->GetBlob(blob->digest);
  if (!cubin.ok()) return std::nullopt;
  kernel.digest = blob->digest.ToString();
  kernel.cubin = std::make_shared<const std::string>(*std::move(cubin));
  return kernel;
}

StoredKernel Artifacts::PutKernel(const cache::Key& key, const std::string& name,
                                  v1::worker::CompiledKernel compiled) {
  StoredKernel kernel;
  kernel.facts.set_registers(compiled.registers());
  kernel.facts.set_spill_bytes(compiled.spill_bytes());
  kernel.facts.set_static_shared_bytes(compiled.static_shared_bytes());
  kernel.facts.set_cubin_bytes(compiled.cubin().size());
  kernel.cubin = std::make_shared<const std::string>(std::move(*compiled.mutable_cubin()));
  kernel.digest = cache::Sha256(*kernel.cubin).ToString();

  cache::NewAction made{.key = key, .name = name, .value = SerializeDeterministic(kernel.facts)};
  made.blobs.push_back({"cubin", *kernel.cubin});
  absl::StatusOr<cache::Action> stored = store_->PutAction(made);
  if (stored.ok() && *stored != cache::ToAction(made)) {
    if (std::optional<StoredKernel> first = FindKernel(key)) return *std::move(first);
    made.replace = true;
    stored = store_->PutAction(made);
  }
  if (!stored.ok()) {
    ++metrics_.store_failures;
    Log().warn("kernel {} is not stored: {}", name, stored.status().ToString());
  }
  return kernel;
}

std::optional<StoredProgram> Artifacts::FindProgram(const cache::Key& key, bool with_ir) {
  const absl::StatusOr<cache::Action> action = store_->GetAction(key.kind(), key.digest());
  if (!action.ok()) return std::nullopt;
  StoredProgram found;
  const cache::BlobRef* blob = FindRole(*action, "program");
  if (blob == nullptr) return std::nullopt;
  absl::StatusOr<std::string> bytes = store_->GetBlob(blob->digest);
  if (!bytes.ok() || !found.program.ParseFromString(*bytes)) return std::nullopt;
  found.bytes = *std::move(bytes);
  found.digest = blob->digest.ToString();

  std::map<std::string, std::shared_ptr<const std::string>> cubins;
  for (const v1::Kernel& kernel : found.program.kernels()) {
    std::shared_ptr<const std::string>& cubin = cubins[kernel.digest()];
    if (!cubin) {
      const absl::StatusOr<cache::Digest> digest = cache::Digest::Parse(kernel.digest());
      if (!digest.ok()) return std::nullopt;
      absl::StatusOr<std::string> read = store_->GetBlob(*digest);
      if (!read.ok()) return std::nullopt;
      cubin = std::make_shared<const std::string>(*std::move(read));
    }
    found.cubins.push_back(cubin);
  }
  if (with_ir) {
    const cache::BlobRef* ir = FindRole(*action, "ir");
    if (ir == nullptr) return std::nullopt;
    const absl::StatusOr<std::string> text = store_->GetBlob(ir->digest);
    if (!text.ok() || !found.ir.ParseFromString(*text) ||
        found.ir.kernels_size() != found.program.kernels_size()) {
      return std::nullopt;
    }
  }
  return found;
}

void Artifacts::PutProgram(const cache::Key& key, const std::string& name,
                           const StoredProgram& program) {
  // A build runs only when the store lacked a part, so what is there under this key may be half.
  cache::NewAction made{.key = key, .name = name, .replace = true};
  made.blobs.push_back({"program", program.bytes});
  made.blobs.push_back({"ir", SerializeDeterministic(program.ir)});
  for (const v1::Kernel& kernel : program.program.kernels()) {
    const absl::StatusOr<cache::Digest> digest = cache::Digest::Parse(kernel.digest());
    if (!digest.ok()) continue;
    const cache::BlobRef reference{"cubin", *digest};
    if (std::find(made.references.begin(), made.references.end(), reference) ==
        made.references.end()) {
      made.references.push_back(reference);
    }
  }
  if (const absl::StatusOr<cache::Action> stored = store_->PutAction(made); !stored.ok()) {
    ++metrics_.store_failures;
    Log().warn("program {} is not stored: {}", program.digest, stored.status().ToString());
  }
}

std::string Artifacts::FindTiming(const std::string& program_digest, const std::string& device) {
  const absl::StatusOr<cache::Digest> digest = cache::Digest::Parse(program_digest);
  if (!digest.ok()) return "";
  return store_->GetTiming(*digest, device).value_or("");
}

void Artifacts::PutTiming(const std::string& program_digest, const std::string& device,
                          const std::string& json) {
  const absl::StatusOr<cache::Digest> digest = cache::Digest::Parse(program_digest);
  if (!digest.ok()) return;
  if (const absl::Status stored = store_->PutTiming(*digest, device, json); !stored.ok()) {
    ++metrics_.store_failures;
    Log().warn("the timing of {} is not stored: {}", program_digest, stored.ToString());
  }
}

// Kept as a timing is: of a program on a device.
bool Artifacts::WasChecked(const std::string& program_digest, const std::string& device) {
  return FindTiming(program_digest, "check on " + device) == "right";
}

void Artifacts::PutChecked(const std::string& program_digest, const std::string& device,
                           bool checked) {
  PutTiming(program_digest, "check on " + device, checked ? "right" : "wrong");
}

void Artifacts::Forget(std::string_view kind, const cache::Digest& key) {
  const absl::Status gone = store_->Delete(kind, key);
  if (gone.ok() || absl::IsNotFound(gone)) return;
  ++metrics_.store_failures;
  Log().warn("{} is not deleted: {}", key.ToString(), gone.ToString());
}

}  // namespace hackc::server

// SPDX-License-Identifier: MIT
// The tables of the store and the way from older versions of them to this one.
//
//   HACKC_RETURN_IF_ERROR(MigrateSchema(database, SchemaSteps()));
//
//   blob         digest -> bytes
//   action       kind, key -> value; key_text is what was hashed; seal is cache::Seal of the whole
//   action_blob  the blobs of an action, in order
//
// `used` is microseconds since 1970 of the last use. Thread safety is the database's.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cache/database.h"

namespace hackc::cache {

// Step i leads from version i to i + 1; version 0 is an empty file. A step that was released never
// changes.
const std::vector<std::string>& SchemaSteps();

// Brings the file to version steps.size() in one transaction. FAILED_PRECONDITION for a newer
// version and for a database that is something else.
absl::Status MigrateSchema(Database& database, const std::vector<std::string>& steps);

}  // namespace hackc::cache

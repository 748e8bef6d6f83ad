// SPDX-License-Identifier: MIT
// Early returns on errors, for every room: `HACKC_RETURN_IF_ERROR(expr)` and
// `HACKC_ASSIGN_OR_RETURN(lhs, expr)`. The installed Abseil has no such header.
//
//   absl::StatusOr<int> Twice(std::string_view text) {
//     HACKC_ASSIGN_OR_RETURN(int value, ParseInt(text));
//     HACKC_RETURN_IF_ERROR(CheckPositive(value));
//     return 2 * value;
//   }
//
// Thread safety: none of their own; they only return.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define HACKC_CONCAT_INNER_(a, b) a##b
#define HACKC_CONCAT_(a, b) HACKC_CONCAT_INNER_(a, b)

#define HACKC_RETURN_IF_ERROR(expr)                                   \
  do {                                                                \
    if (::absl::Status hackc_status_ = (expr); !hackc_status_.ok()) { \
      return hackc_status_;                                           \
    }                                                                 \
  } while (false)

#define HACKC_ASSIGN_OR_RETURN(lhs, expr) \
  HACKC_ASSIGN_OR_RETURN_IMPL_(HACKC_CONCAT_(hackc_status_or_, __LINE__), lhs, expr)

#define HACKC_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr) \
  auto statusor = (expr);                                 \
  if (!statusor.ok()) return statusor.status();           \
  lhs = *std::move(statusor)

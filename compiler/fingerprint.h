// SPDX-License-Identifier: MIT
// SHA-256 of the compiler's sources, made by the build (cmake/HackcFingerprint.cmake). It is the
// code generation version in a program's key: the same sources give the same keys on every machine.
// Thread safety: a constant.
#pragma once

namespace hackc {

const char* Fingerprint();

}  // namespace hackc

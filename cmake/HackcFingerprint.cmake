# SPDX-License-Identifier: MIT
# cmake -DSOURCE_DIR=... -DOUTPUT=... -P HackcFingerprint.cmake: writes a C++ file with the SHA-256 of the
# sources of the compiler and of base/. It stands in every program's key, so that a changed compiler never answers
# from what an older one made.
file(GLOB_RECURSE sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/base/*.h ${SOURCE_DIR}/base/*.cc
     ${SOURCE_DIR}/compiler/*.h ${SOURCE_DIR}/compiler/*.cc)
list(SORT sources)
set(digests "")
foreach(source ${sources})
  file(SHA256 ${SOURCE_DIR}/${source} digest)
  string(APPEND digests "${source} ${digest}\n")
endforeach()
string(SHA256 fingerprint "${digests}")
set(text "#include \"compiler/fingerprint.h\"\nnamespace hackc {\nconst char* Fingerprint() { return \"${fingerprint}\"; }\n}\n")
file(WRITE ${OUTPUT} "${text}")

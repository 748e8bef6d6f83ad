// SPDX-License-Identifier: MIT
#include "compiler/codegen/prelude.h"

#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::codegen {
namespace {

struct Entry {
  std::string name;
  std::string_view needs;  // another entry, or ""
  std::string text;
};

// ldmatrix of `count` 8x8 matrices: this lane gives the address of a row and gets one register of each.
Entry LoadMatrix(int count, bool transposed) {
  std::string name = Cat("load_matrix_x", count, transposed ? "_transposed" : "");
  std::string places, registers;
  for (int i = 0; i < count; ++i) {
    places += Cat(i ? ", %" : "%", i);
    registers += Cat(i ? ", " : "", "\"=r\"(r[", i, "])");
  }
  std::string text =
      Cat("__device__ __forceinline__ void ", name, R"((void* target, const void* row) {
  unsigned* r = (unsigned*)target;
  asm volatile("ldmatrix.sync.aligned.m8n8.x)",
          count, transposed ? ".trans" : "", ".shared.b16 {", places, "}, [%", count,
          R"(];"
               : )",
          registers, R"( : "r"(shared_address(row)) : "memory");
})");
  return {std::move(name), "shared_address", std::move(text)};
}

// mma of 16-bit operands of the PTX type `type`.
Entry Mma16(const std::string& type) {
  return {"mma_m16n8k16_" + type, "",
          Cat("__device__ __forceinline__ void mma_m16n8k16_", type,
              R"((float* c, const void* a, const void* b) {
  const unsigned* x = (const unsigned*)a;
  const unsigned* y = (const unsigned*)b;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.)",
              type, ".", type,
              R"(.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
})")};
}

// An asm statement that reads or writes memory is volatile and clobbers memory, so that it stays between
// its barriers. Pointers into shared memory are converted to the 32-bit addresses that PTX wants.
const std::vector<Entry>& Table() {
  static const auto* table = new std::vector<Entry>{
      {"bf16", "", "typedef unsigned short bf16;"},
      {"f16", "", "typedef unsigned short f16;"},
      {"INFINITY_F32", "", "#define INFINITY_F32 __int_as_float(0x7f800000)"},
      {"NAN_F32", "", "#define NAN_F32 __int_as_float(0x7fffffff)"},
      {"INFINITY_F64", "", "#define INFINITY_F64 __longlong_as_double(0x7ff0000000000000LL)"},
      {"NAN_F64", "", "#define NAN_F64 __longlong_as_double(0x7fffffffffffffffLL)"},
      {"bf16_to_float", "bf16",
       R"(__device__ __forceinline__ float bf16_to_float(bf16 bits) {
  return __uint_as_float((unsigned)bits << 16);
})"},
      {"float_to_bf16", "bf16",
       R"(__device__ __forceinline__ bf16 float_to_bf16(float value) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
})"},
      {"f16_to_float", "f16",
       R"(__device__ __forceinline__ float f16_to_float(f16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
})"},
      {"float_to_f16", "f16",
       R"(__device__ __forceinline__ f16 float_to_f16(float value) {
  f16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
})"},
      {"floor_div", "",
       R"(template <typename Int>
__device__ __forceinline__ Int floor_div(Int a, Int b) {
  Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
})"},
      {"floor_mod", "floor_div",
       R"(template <typename Int>
__device__ __forceinline__ Int floor_mod(Int a, Int b) {
  return a - b * floor_div(a, b);
})"},
      {"shared_address", "",
       R"(__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
})"},
      {"copy_async", "shared_address",
       R"(// Starts copying 4, 8 or 16 bytes from global to shared memory. Of an invalid source nothing is read and
// zeros arrive.
template <int bytes>
__device__ __forceinline__ void copy_async(void* target, const void* source, bool valid = true) {
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(target)), "l"(source), "r"(valid ? 16 : 0) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(shared_address(target)), "l"(source), "n"(bytes), "r"(valid ? bytes : 0)
                 : "memory");
  }
})"},
      {"copy_async_commit", "",
       R"(__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
})"},
      {"copy_async_wait", "",
       R"(template <int pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
})"},
      LoadMatrix(1, false),
      LoadMatrix(1, true),
      LoadMatrix(2, false),
      LoadMatrix(2, true),
      LoadMatrix(4, false),
      LoadMatrix(4, true),
      Mma16("bf16"),
      Mma16("f16"),
      {"mma_m16n8k8_tf32", "",
       R"(__device__ __forceinline__ void mma_m16n8k8_tf32(float* c, const float* a, const float* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
})"},
  };
  return *table;
}

}  // namespace

std::string Prelude::Use(std::string_view name) {
  for (const Entry& entry : Table()) {
    if (entry.name != name) continue;
    if (used_.insert(entry.name).second && !entry.needs.empty()) Use(entry.needs);
    return std::string(name);
  }
  HACKC_FAIL() << "no prelude entry " << name;
  return {};
}

std::string Prelude::Text() const {
  std::string text;
  for (const Entry& entry : Table()) {
    if (used_.count(entry.name)) text.append(entry.text).append("\n");
  }
  return text;
}

std::vector<std::string_view> Prelude::Names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : Table()) names.push_back(entry.name);
  return names;
}

}  // namespace hackc::codegen

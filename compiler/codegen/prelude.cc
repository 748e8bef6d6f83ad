// SPDX-License-Identifier: MIT
#include "compiler/codegen/prelude.h"

#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/lookup.h"

namespace hackc::codegen {
namespace {

struct Entry {
  std::string name;
  std::string_view needs;  // another entry, or ""
  std::string text;
};

// "A, B": `item` of each number below `count`.
std::string List(int count, const auto& item) {
  std::string list;
  for (int i = 0; i < count; ++i) list += Cat(i ? ", " : "", item(i));
  return list;
}

// Operands of an asm statement: "%2, %3" are two from 2 on.
std::string Places(int count, int first) {
  return List(count, [&](int i) { return Cat("%", first + i); });
}

// ldmatrix of `count` 8x8 matrices: this lane gives the address of a row and gets one register of
// each.
Entry LoadMatrix(int count, bool transposed) {
  std::string name = Cat("load_matrix_x", count, transposed ? "_transposed" : "");
  const std::string registers = List(count, [](int i) { return Cat("\"=r\"(r[", i, "])"); });
  std::string text =
      Cat("__device__ __forceinline__ void ", name, R"((void* target, const void* row) {
  unsigned* r = (unsigned*)target;
  asm volatile("ldmatrix.sync.aligned.m8n8.x)",
          count, transposed ? ".trans" : "", ".shared.b16 {", Places(count, 0), "}, [%", count,
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

// Bulk copies of a box with `rank` coordinates, the innermost first.
Entry BulkCopy(int rank, bool load) {
  const std::string parameters = List(rank, [](int i) { return Cat("int c", i); });
  const std::string values = List(rank, [](int i) { return Cat("\"r\"(c", i, ")"); });
  const std::string name = Cat(load ? "bulk_load_" : "bulk_store_", rank);
  const std::string box = Cat("[%1, {", Places(rank, 2), "}]");
  return {name, "shared_address",
          Cat("__device__ __forceinline__ void ", name,
              load ? "(void* memory, const TensorMap* map, void* barrier, "
                   : "(const void* memory, const TensorMap* map, ",
              parameters, ") {\n  asm volatile(\"cp.async.bulk.tensor.", rank,
              load ? "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                   : "d.global.shared::cta.tile.bulk_group ",
              load ? Cat("[%0], ", box, ", [%", rank + 2, "]") : box + ", [%0]",
              ";\"\n               :: \"r\"(shared_address(memory)), \"l\"(map), ", values,
              load ? ", \"r\"(shared_address(barrier))" : "", " : \"memory\");\n}")};
}

// A function with no operands but, if `type` is not empty, one constant.
Entry Instruction(const std::string& name, const std::string& ptx, bool constant = false) {
  return {name, "",
          Cat(constant ? "template <int value>\n" : "", "__device__ __forceinline__ void ", name,
              "() {\n  asm volatile(\"", ptx,
              constant ? " %0;\" :: \"n\"(value) : " : ";\" ::: ", "\"memory\");\n}")};
}

// An asm statement that reads or writes memory is volatile and clobbers memory, so that it stays
// between its barriers. Pointers into shared memory are converted to the 32-bit addresses that PTX
// wants.
std::vector<Entry> MakeTable() {
  std::vector<Entry> table = {
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
      {"TensorMap", "", "struct alignas(64) TensorMap {\n  unsigned long long words[16];\n};"},
      {"shared_address", "",
       R"(__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
})"},
      {"copy_async", "shared_address",
       R"(// Starts copying 4, 8 or 16 bytes from global to shared memory. Of an invalid source nothing is read and
// zeros arrive. Sixteen bytes go past L1 unless they are to be kept.
template <int bytes, bool keep = false>
__device__ __forceinline__ void copy_async(void* target, const void* source, bool valid = true) {
  if (bytes == 16 && !keep) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(target)), "l"(source), "r"(valid ? 16 : 0) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(shared_address(target)), "l"(source), "n"(bytes), "r"(valid ? bytes : 0)
                 : "memory");
  }
})"},
      Instruction("copy_async_commit", "cp.async.commit_group"),
      Instruction("copy_async_wait", "cp.async.wait_group", true),
  };
  for (int count : {1, 2, 4}) {
    for (bool transposed : {false, true}) table.push_back(LoadMatrix(count, transposed));
  }
  for (bool load : {true, false}) {
    for (int rank = 1; rank <= 5; ++rank) table.push_back(BulkCopy(rank, load));
  }
  const std::vector<Entry> others = {
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
      {"mbarrier_init", "shared_address",
       R"(// By one thread; the others see it behind a block barrier.
__device__ __forceinline__ void mbarrier_init(long long* barriers, int number, int count) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < number; ++i) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(shared_address(barriers + i)), "r"(count) : "memory");
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
})"},
      {"mbarrier_arrive", "shared_address",
       R"(__device__ __forceinline__ void mbarrier_arrive(long long* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
})"},
      {"mbarrier_wait", "shared_address",
       R"(__device__ __forceinline__ void mbarrier_wait(long long* barrier, int parity) {
  unsigned over;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(shared_address(barrier)), "r"(parity) : "memory");
  } while (over == 0);
})"},
      Instruction("proxy_fence", "fence.proxy.async"),
      Instruction("bulk_commit", "cp.async.bulk.commit_group"),
      Instruction("bulk_wait", "cp.async.bulk.wait_group", true),
      Instruction("bulk_wait_read", "cp.async.bulk.wait_group.read", true),
      Instruction("fewer_registers", "setmaxnreg.dec.sync.aligned.u32", true),
      Instruction("more_registers", "setmaxnreg.inc.sync.aligned.u32", true),
      {"named_barrier", "",
       R"(__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
})"},
      Instruction("wgmma_fence", "wgmma.fence.sync.aligned"),
      Instruction("wgmma_commit", "wgmma.commit_group.sync.aligned"),
      Instruction("wgmma_wait", "wgmma.wait_group.sync.aligned", true),
      {"wgmma_settle", "",
       R"(// Registers that a wgmma has written may be used from here on, and not before.
template <int count>
__device__ __forceinline__ void wgmma_settle(float (&registers)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(registers[i]) :: "memory");
})"},
      {"wgmma_operand", "shared_address",
       R"(// The descriptor of an operand; mode: 0 no swizzle, 1 of 128 bytes, 2 of 64, 3 of 32.
__device__ __forceinline__ unsigned long long wgmma_operand(const void* start, int leading, int stride,
                                                            int mode) {
  return (unsigned long long)((shared_address(start) & 0x3ffff) >> 4) |
         (unsigned long long)(leading >> 4 & 0x3fff) << 16 |
         (unsigned long long)(stride >> 4 & 0x3fff) << 32 | (unsigned long long)mode << 62;
})"},
  };
  table.insert(table.end(), others.begin(), others.end());
  return table;
}

const std::vector<Entry>& Table() {
  static const auto* table = new std::vector<Entry>(MakeTable());
  return *table;
}

}  // namespace

std::string Prelude::Use(std::string_view name) {
  const Entry* entry = FindBy(Table(), &Entry::name, name);
  HACKC_CHECK(entry != nullptr) << "no prelude entry " << name;
  if (used_.insert(entry->name).second && !entry->needs.empty()) Use(entry->needs);
  return entry->name;
}

std::string Prelude::UseWgmma(const ir::Wgmma& n, bool a_in_registers) {
  const bool tf32 = n.dtype == ir::DType::kF32;
  const std::string type = tf32 ? "tf32" : std::string(ir::Name(n.dtype));
  const int a_turned = n.a_major == ir::Major::kMN, b_turned = n.b_major == ir::Major::kMN;
  const std::string name = Cat("wgmma_m64n", n.n, "k", tf32 ? 8 : 16, "_", type,
                               a_in_registers ? "_registers"
                               : a_turned     ? "_mn"
                                              : "_k",
                               b_turned ? "_mn" : "_k");
  const int count = n.n / 2, a_words = a_in_registers ? 4 : 1;
  std::string operands;
  for (int i = 0; i < count; ++i)
    operands += Cat(i % 8 ? ", " : i ? ",\n        " : "", "\"+f\"(c[", i, "])");
  const std::string a_operands =
      a_in_registers ? List(a_words, [](int i) { return Cat("\"r\"(a[", i, "])"); }) : "\"l\"(a)";
  const std::string turned =
      tf32 ? "" : Cat(a_in_registers ? std::string() : Cat(", ", a_turned), ", ", b_turned);
  wgmma_[name] =
      Cat("__device__ __forceinline__ void ", name, "(float* c, ",
          a_in_registers ? "const void* fragment" : "unsigned long long a",
          ", unsigned long long b, bool keep) {\n",
          a_in_registers ? "  const unsigned* a = (const unsigned*)fragment;\n" : "",
          "  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %", count + a_words + 1,
          ", 0;\\n\"\n      \"wgmma.mma_async.sync.aligned.m64n", n.n, "k", tf32 ? 8 : 16, ".f32.",
          type, ".", type, " {", Places(count, 0), "}, \"\n      \"", a_in_registers ? "{" : "",
          Places(a_words, count), a_in_registers ? "}" : "", ", %", count + a_words, ", p, 1, 1",
          turned, ";\\n}\"\n      : ", operands, "\n      : ", a_operands,
          ", \"l\"(b), \"r\"((int)keep) : \"memory\");\n}");
  return name;
}

std::string Prelude::Text() const {
  std::string text;
  for (const Entry& entry : Table()) {
    if (used_.count(entry.name)) text.append(entry.text).append("\n");
  }
  for (const auto& [name, wrapper] : wgmma_) text.append(wrapper).append("\n");
  return text;
}

std::vector<std::string_view> Prelude::Names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : Table()) names.push_back(entry.name);
  return names;
}

}  // namespace hackc::codegen

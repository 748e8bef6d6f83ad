// SPDX-License-Identifier: MIT
#include "client/runtime/uploader.h"

#include <random>
#include <string>
#include <vector>

#include "client/runtime/float_convert.h"
#include "client/runtime/program_check.h"
#include "gtest/gtest.h"
#include "tests/client/fake_gpu.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

std::string RandomHalves(int64_t bytes) {
  std::mt19937_64 random(7);
  std::string made(bytes, '\0');
  for (char& byte : made) byte = static_cast<char>(random());
  return made;
}

class UploaderTest : public testing::Test {
 protected:
  // What lands on the GPU of `count` elements, in a buffer with a guard behind.
  std::string Upload(v1::DType from, v1::DType to, const char* source, int64_t count) {
    std::string target(count * ElementBytes(to) + 64, '\x5a');
    EXPECT_THAT(
        uploader_.Copy(reinterpret_cast<CUdeviceptr>(target.data()), to, source, from, count),
        Ok());
    EXPECT_EQ(target.substr(count * ElementBytes(to)), std::string(64, '\x5a'));
    return target.substr(0, count * ElementBytes(to));
  }
  FakeGpu gpu_{TinyProgram()};
  Uploader uploader_{gpu_.driver()};
};

TEST_F(UploaderTest, EverySizeAndConversionIsThatOfTheWhole) {
  const int64_t chunk = Uploader::kChunkBytes / 4;
  const std::string source = RandomHalves(4 * (2 * chunk + 2));
  for (v1::DType from : {v1::DTYPE_FLOAT32, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16}) {
    for (v1::DType to : {v1::DTYPE_FLOAT32, v1::DTYPE_BFLOAT16}) {
      for (int64_t count : {int64_t{0}, int64_t{1}, chunk - 1, chunk, chunk + 1, 2 * chunk + 1}) {
        // An odd start: tensors inside a file have no alignment.
        std::string expected(count * ElementBytes(to), '\0');
        ASSERT_THAT(ConvertFloats(from, source.data() + 1, to, expected.data(), count), Ok());
        EXPECT_TRUE(Upload(from, to, source.data() + 1, count) == expected)
            << v1::DType_Name(from) << " to " << v1::DType_Name(to) << ", " << count;
      }
    }
  }
}

TEST_F(UploaderTest, IntegersAreCopiedAndNotConverted) {
  const std::string source = RandomHalves(1 << 20);
  EXPECT_EQ(Upload(v1::DTYPE_INT64, v1::DTYPE_INT64, source.data(), 1 << 17), source);
  EXPECT_THAT(
      uploader_.Copy(0, v1::DTYPE_FLOAT32, source.data(), v1::DTYPE_INT32, 1),
      Fails(absl::StatusCode::kInvalidArgument, "no conversion from DTYPE_INT32 to DTYPE_FLOAT32"));
}

TEST_F(UploaderTest, PinnedMemoryIsTakenWhenNeededAndGivenBack) {
  const std::string source = RandomHalves(3 * Uploader::kChunkBytes);
  {
    Uploader uploader(gpu_.driver());
    std::string target(source.size(), '\0');
    const auto address = reinterpret_cast<CUdeviceptr>(target.data());
    ASSERT_THAT(uploader.Copy(address, v1::DTYPE_BOOL, source.data(), v1::DTYPE_BOOL, 4), Ok());
    EXPECT_TRUE(gpu_.host_allocations.empty());
    for (int i = 0; i < 2; ++i) {
      ASSERT_THAT(uploader.Copy(address, v1::DTYPE_BOOL, source.data(), v1::DTYPE_BOOL,
                                static_cast<int64_t>(source.size())),
                  Ok());
      EXPECT_EQ(gpu_.host_allocations.size(), 2u);
    }
    EXPECT_TRUE(target == source);
  }
  EXPECT_TRUE(gpu_.host_allocations.empty());
}

TEST_F(UploaderTest, WorksWithoutPinnedMemory) {
  gpu_.host_memory_limit = 0;
  const std::string source = RandomHalves(2 * Uploader::kChunkBytes + 6);
  EXPECT_TRUE(Upload(v1::DTYPE_BFLOAT16, v1::DTYPE_BFLOAT16, source.data(),
                     static_cast<int64_t>(source.size()) / 2) == source);
}

}  // namespace
}  // namespace hackc::client

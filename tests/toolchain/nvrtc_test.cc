// SPDX-License-Identifier: MIT
#include "compiler/toolchain/nvrtc.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::toolchain {
namespace {

std::string Kernel(int index) {
  return absl::StrCat(
      "extern \"C\" __global__ void __launch_bounds__(128, 1) k(float* x) {\n",
      "  __shared__ float s[64];\n", "  s[threadIdx.x & 63] = x[threadIdx.x] * ", index,
      ".5f;\n  __syncthreads();\n  x[threadIdx.x] = s[63 - (threadIdx.x & 63)];\n}\n");
}

TEST(Nvrtc, ReportsVersionAndArchs) {
  auto version = Version();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_THAT(*version, testing::MatchesRegex("[0-9]+\\.[0-9]+"));
  auto capabilities = Capabilities();
  ASSERT_TRUE(capabilities.ok());
  EXPECT_THAT(*capabilities, testing::Contains(90));
}

TEST(Nvrtc, CompilesForEveryArchWithItsSuffix) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    auto cubin = CompileCubin(Kernel(1), "k", arch);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_TRUE(absl::StartsWith(cubin->bytes,
                                 "\x7f"
                                 "ELF"));
    EXPECT_GT(cubin->registers, 0u) << arch;
    EXPECT_LE(cubin->registers, 64u) << arch;
    EXPECT_EQ(cubin->spill_bytes, 0u) << arch;
    EXPECT_GE(cubin->static_shared_bytes, 256u) << arch;
    EXPECT_EQ(cubin->warnings, "");
  }
}

// In a process of its own, since a process loads NVRTC once.
TEST(NvrtcDeathTest, FindsItsBuiltinsBesideItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string home = absl::StrCat(testing::TempDir(), "/cuda_home_", getpid());
  EXPECT_EXIT(
      {
        std::filesystem::create_directories(home + "/lib64");
        for (const auto& entry : std::filesystem::directory_iterator(HACKC_NVRTC_DIR)) {
          std::string name = entry.path().filename();
          if (!absl::StartsWith(name, "libnvrtc")) continue;
          std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                          absl::StrCat(home, "/lib64/", name));
        }
        setenv("CUDA_HOME", home.c_str(), 1);
        // The process ends here: nobody else removes the folder.
        bool compiled = CompileCubin(Kernel(1), "k", "sm_90a").ok();
        std::vector<std::string> loaded;
        dl_iterate_phdr(
            [](dl_phdr_info* info, size_t, void* names) {
              static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
              return 0;
            },
            &loaded);
        std::filesystem::remove_all(home);
        std::string beside = home + "/lib64/libnvrtc-builtins.so.";
        bool found = std::any_of(loaded.begin(), loaded.end(), [&](const std::string& name) {
          return absl::StartsWith(name, beside);
        });
        _exit(compiled ? (found ? 0 : 2) : 1);
      },
      testing::ExitedWithCode(0), "");
}

// What a kernel takes is in its contract, so it must not depend on what a driver's cache holds. In
// processes of their own, since a process loads NVRTC once.
TEST(NvrtcDeathTest, NoCacheButOurOwn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* version : {"12.8", "12.9", "13.0", "13.1 silent"}) {
    EXPECT_EXIT(
        {
          setenv("CUDA_HOME", HACKC_FAKE_CUDA_HOME, 1);
          setenv("HACKC_FAKE_NVRTC", version, 1);
          const absl::StatusOr<Cubin> cubin = CompileCubin(Kernel(1), "k", "sm_90a");
          if (cubin.ok() && cubin->registers == 42 && cubin->bytes == "cubin") _exit(42);
          fprintf(stderr, "%s\n", cubin.status().ToString().c_str());
          _exit(1);
        },
        testing::ExitedWithCode(version[4] == '\0' ? 42 : 1),
        version[4] == '\0' ? "" : "INTERNAL.*does not say how many registers")
        << version;
  }
}

TEST(Nvrtc, CountsSpills) {
  std::string text =
      "extern \"C\" __global__ void __launch_bounds__(1024, 2) k(float* x, int n) {\n float "
      "v[96];\n";
  absl::StrAppend(
      &text, "#pragma unroll\nfor (int i = 0; i < 96; ++i) v[i] = x[i * n];\n",
      "#pragma unroll\nfor (int i = 0; i < 96; ++i) x[i * n + 1] = v[95 - i] * v[i];\n}\n");
  auto cubin = CompileCubin(text, "k", "sm_80");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_GT(cubin->spill_bytes, 0u);
  EXPECT_LE(cubin->registers, 32u);
}

TEST(Nvrtc, AMissingArchIsNamedWithThoseThereAre) {
  for (const char* arch : {"sm_35", "sm_90b", "gfx942", "sm_", "sm_90aa", ""}) {
    auto cubin = CompileCubin(Kernel(1), "k", arch);
    EXPECT_EQ(cubin.status().code(), absl::StatusCode::kUnimplemented) << arch;
    EXPECT_THAT(std::string(cubin.status().message()),
                testing::HasSubstr(absl::StrCat("has no arch \"", arch, "\"; it has sm_75")));
    EXPECT_THAT(std::string(cubin.status().message()), testing::HasSubstr(", sm_90"));
  }
}

TEST(Nvrtc, TextThatDoesNotCompileGivesTheLog) {
  auto cubin =
      CompileCubin("extern \"C\" __global__ void k() { int x = undefined_name; }", "k", "sm_90a");
  EXPECT_EQ(cubin.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(cubin.status().message()),
              testing::HasSubstr("\"undefined_name\" is undefined"));
}

TEST(Nvrtc, WarningsComeBack) {
  auto cubin = CompileCubin(
      "extern \"C\" __global__ void k(int* x) { int unused; *x = 1 ? 1 : 2; }", "k", "sm_90a");
  ASSERT_TRUE(cubin.ok());
  EXPECT_THAT(cubin->warnings, testing::HasSubstr("unused"));
}

TEST(Nvrtc, TheSameTextGivesTheSameBytes) {
  auto first = CompileCubin(Kernel(3), "k", "sm_90a"),
       second = CompileCubin(Kernel(3), "k", "sm_90a");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->bytes, second->bytes);
}

TEST(Nvrtc, SixteenThreadsCompileAtOnce) {
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(CompileCubin(Kernel(i), "k", "sm_90a")->bytes);
  std::vector<std::thread> threads;
  std::vector<int> wrong(16, 0);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 4; ++round) {
        int i = (t + round) % 4;
        auto cubin = CompileCubin(Kernel(i), "k", "sm_90a");
        wrong[t] += !cubin.ok() || cubin->bytes != expected[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

long ResidentKilobytes() {
  std::ifstream file("/proc/self/statm");
  long total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4;
}

TEST(Nvrtc, MemoryStaysFlatOverManyCompiles) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(CompileCubin(Kernel(i), "k", "sm_90a").ok());
  long before = ResidentKilobytes();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(CompileCubin(Kernel(i), "k", "sm_90a").ok());
    ASSERT_FALSE(CompileCubin("syntax error", "k", "sm_90a").ok());
  }
  EXPECT_LT(ResidentKilobytes() - before, 20000);  // 100 kB a compile would be a leak
}

}  // namespace
}  // namespace hackc::toolchain

// SPDX-License-Identifier: MIT
// libhackc.so as another language sees it: opened at run time, judged by codes and texts.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "client/hackc.h"
#include "client/runtime/digest.h"
#include "client/runtime/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(HACKC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <typename Function>
  Function* Get(Function*, const char* name) {
    auto* found = reinterpret_cast<Function*>(dlsym(library_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  std::string Error() { return Get(&hackc_last_error, "hackc_last_error")(); }
  void* library_ = nullptr;
};
#define CALL(function) Get(&function, #function)

TEST_F(CApi, NullPointersAreErrors) {
  EXPECT_EQ(CALL(hackc_program_open)(nullptr, 0, nullptr, nullptr), HACKC_INVALID_ARGUMENT);
  EXPECT_THAT(Error(), HasSubstr("directory: null pointer"));
  EXPECT_EQ(CALL(hackc_program_open)("/tmp", 0, nullptr, nullptr), HACKC_INVALID_ARGUMENT);
  EXPECT_EQ(CALL(hackc_weight_info)(nullptr, 0, nullptr), HACKC_INVALID_ARGUMENT);
  EXPECT_EQ(CALL(hackc_bind_weight)(nullptr, "w", nullptr, 1, 0, nullptr, 0),
            HACKC_INVALID_ARGUMENT);
  EXPECT_EQ(CALL(hackc_prepare)(nullptr, nullptr), HACKC_INVALID_ARGUMENT);
  EXPECT_EQ(CALL(hackc_run)(nullptr, "prefill", nullptr, 0, nullptr, 0, nullptr, 0, nullptr),
            HACKC_INVALID_ARGUMENT);
  EXPECT_EQ(CALL(hackc_graph_launch)(nullptr, nullptr), HACKC_INVALID_ARGUMENT);
  CALL(hackc_program_close)(nullptr);
  CALL(hackc_graph_destroy)(nullptr);
}

TEST_F(CApi, OpenSaysWhatIsWrong) {
  hackc_program* program = nullptr;
  EXPECT_EQ(CALL(hackc_program_open)("/nonexistent", 0, nullptr, &program), HACKC_NOT_FOUND);
  EXPECT_THAT(Error(), HasSubstr("/nonexistent/program.pb: no such file"));
  EXPECT_EQ(program, nullptr);
  fs::path folder = fs::temp_directory_path() / ("hackc_c_api_" + std::to_string(getpid()));
  v1::Program tiny = TinyProgram();
  ASSERT_THAT(WriteFile(folder / "program.pb", tiny.SerializeAsString()), Ok());
  for (const v1::Kernel& kernel : tiny.kernels()) {
    ASSERT_THAT(WriteFile(folder / (kernel.name() + ".cubin"), kernel.entry()), Ok());
  }
  // Without a driver it says so; with one, the cubins of this test are no code.
  EXPECT_NE(CALL(hackc_program_open)(folder.c_str(), 0, nullptr, &program), HACKC_OK);
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
  } else {
    EXPECT_THAT(Error(), HasSubstr("FAILED_PRECONDITION: no CUDA driver on this machine"));
  }
  fs::remove_all(folder);
}

TEST_F(CApi, NothingIsPrinted) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  hackc_program* program = nullptr;
  const char text[] = "\x0a\x02\xff\xfe";  // a string that is no UTF-8
  EXPECT_EQ(CALL(hackc_program_load)({text, 4}, nullptr, 0, 0, nullptr, &program), HACKC_DATA_LOSS);
  fs::path folder = fs::temp_directory_path() / ("hackc_c_text_" + std::to_string(getpid()));
  ASSERT_THAT(WriteFile(folder / "program.pb", text), Ok());
  EXPECT_EQ(CALL(hackc_program_open)(folder.c_str(), 0, nullptr, &program), HACKC_DATA_LOSS);
  fs::remove_all(folder);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(CApi, HasTheVersionOfThePackage) {
  const std::string version = CALL(hackc_version)();
  const std::string package =
      *ReadFile(fs::path(HACKC_SOURCE_DIR) / "client/python/hackc/__init__.py", 1 << 20);
  EXPECT_THAT(package, HasSubstr("__version__ = \"" + version + "\""));
  const std::string name = fs::canonical(HACKC_LIBRARY).filename();
  EXPECT_EQ(name, "libhackc.so." + version);
}

TEST_F(CApi, EveryCodeHasAName) {
  // Those that a status can have are 0 to 16; a name that is gone does not compile.
  const int codes[] = {HACKC_OK,
                       HACKC_CANCELLED,
                       HACKC_UNKNOWN,
                       HACKC_INVALID_ARGUMENT,
                       HACKC_DEADLINE_EXCEEDED,
                       HACKC_NOT_FOUND,
                       HACKC_ALREADY_EXISTS,
                       HACKC_PERMISSION_DENIED,
                       HACKC_RESOURCE_EXHAUSTED,
                       HACKC_FAILED_PRECONDITION,
                       HACKC_ABORTED,
                       HACKC_OUT_OF_RANGE,
                       HACKC_UNIMPLEMENTED,
                       HACKC_INTERNAL,
                       HACKC_UNAVAILABLE,
                       HACKC_DATA_LOSS,
                       HACKC_UNAUTHENTICATED};
  for (int i = 0; i <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++i) {
    EXPECT_EQ(codes[i], i);
  }
}

// Nothing but the C functions may be visible: PyTorch's process has a protobuf of its own.
TEST_F(CApi, HidesItsInsides) {
  EXPECT_EQ(dlsym(library_, "_ZN5hackc2v17ProgramC1Ev"), nullptr);
  Dl_info info;
  if (void* symbol = dlsym(library_, "_ZN5hackc6client12CheckProgramERKNS_2v17ProgramE")) {
    ASSERT_NE(dladdr(symbol, &info), 0);
    EXPECT_THAT(info.dli_fname, testing::Not(HasSubstr("libhackc.so")));
  }
}

}  // namespace
}  // namespace hackc::client

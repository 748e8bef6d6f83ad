// SPDX-License-Identifier: MIT
#include "cache/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hackc::cache {
namespace {

// FIPS 180-2, appendix B.
TEST(Digest, PublishedVectors) {
  EXPECT_EQ(Sha256("").ToString(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc").ToString(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(std::string(1000000, 'a')).ToString(),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, ParsesWhatItPrints) {
  for (int i = 0; i < 100; ++i) {
    const Digest digest = Sha256(std::to_string(i));
    EXPECT_EQ(Digest::Parse(digest.ToString()).value(), digest);
    EXPECT_EQ(Digest::FromRaw(digest.raw()).value(), digest);
  }
}

TEST(Digest, RefusesEveryOtherSpelling) {
  const std::string good = Sha256("abc").ToString();
  std::string upper = good;
  upper[8] = 'A';
  const std::string wrong[] = {"",         "sha256:",          good.substr(7),
                               good + "0", good.substr(0, 70), "sha512:" + good.substr(7),
                               upper,      " " + good,         good + "\n"};
  for (const std::string& text : wrong) {
    const absl::Status status = Digest::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("expected \"sha256:\" and 64 lower-case hex"));
  }
  EXPECT_EQ(Digest::Parse("a\nb").status().message(),
            "digest: expected \"sha256:\" and 64 lower-case hex digits, got \"a\\nb\" (3 bytes)");
  EXPECT_EQ(Digest::FromRaw("short").status().message(), "digest: expected 32 bytes, got 5");
}

}  // namespace
}  // namespace hackc::cache

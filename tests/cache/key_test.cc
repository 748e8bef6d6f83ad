// SPDX-License-Identifier: MIT
#include "cache/key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>

#include "compiler/support/internal_error.h"

namespace hackc::cache {
namespace {

KeyBuilder Sample() {
  KeyBuilder builder("kernel");
  builder.Add("ir", "kernel k0 {\n  store %y\n}")
      .Add("arch", "sm_90a")
      .Add("flags", "-O3")
      .Add("version", 3);
  return builder;
}

TEST(Key, ExplainIsWhatWasHashed) {
  const Key key = Sample().Build();
  EXPECT_EQ(key.Explain(),
            "hackc-key 1 kernel\n"
            "arch[6]=sm_90a\n"
            "flags[3]=-O3\n"
            "ir[24]=kernel k0 {\n  store %y\n}\n"
            "version[1]=3\n");
  EXPECT_EQ(key.digest(), Sha256(key.Explain()));
  // Changes only with the format's version: stored keys would all miss.
  EXPECT_EQ(key.digest().ToString(),
            "sha256:fa0b8ad9add2d4cc82f2aad37f27be6638539f56956754b2290dc2dcd75a013b");
}

TEST(Key, OrderOfAddingIsNoPartOfIt) {
  const Key forward = KeyBuilder("kernel").Add("a", "1").Add("b", "2").Build();
  const Key backward = KeyBuilder("kernel").Add("b", "2").Add("a", "1").Build();
  EXPECT_EQ(forward.digest(), backward.digest());
}

TEST(Key, EachFieldMatters) {
  std::set<Digest> digests = {Sample().Build().digest()};
  const Key sample = Sample().Build();
  for (const auto& [changed, unused] : sample.fields()) {
    KeyBuilder other("kernel"), without("kernel");
    for (const auto& [name, value] : sample.fields()) {
      other.Add(name, name == changed ? value + " " : value);
      if (name != changed) without.Add(name, value);
    }
    EXPECT_TRUE(digests.insert(other.Build().digest()).second) << changed;
    EXPECT_TRUE(digests.insert(without.Build().digest()).second) << changed;
  }
  EXPECT_TRUE(digests.insert(KeyBuilder(Sample()).Add("more", "").Build().digest()).second);
  EXPECT_TRUE(digests.insert(KeyBuilder("program").Build().digest()).second);
  EXPECT_TRUE(digests.insert(KeyBuilder("kernel").Build().digest()).second);
}

// A value that looks like the next field is still one value.
TEST(Key, FieldsCannotRunIntoEachOther) {
  EXPECT_NE(KeyBuilder("k").Add("a", "1\nb[1]=2").Build().digest(),
            KeyBuilder("k").Add("a", "1").Add("b", "2").Build().digest());
  EXPECT_NE(KeyBuilder("k").Add("a", "bc").Add("d", "").Build().digest(),
            KeyBuilder("k").Add("a", "b").Add("d", "c").Build().digest());
}

TEST(Key, HostDoesNotMatter) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {  // another process, address layout, folder, environment and time zone
    clearenv();
    setenv("TZ", "Asia/Tokyo", 1);
    setenv("HOSTNAME", "elsewhere", 1);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    const bool moved = chdir("/") == 0;
    const std::string digest = Sample().Build().digest().ToString();
    _exit(moved && write(ends[1], digest.data(), digest.size()) ==
                       static_cast<ssize_t>(digest.size())
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  char text[200];
  const ssize_t size = read(ends[0], text, sizeof(text));
  EXPECT_EQ(std::string(text, size), Sample().Build().digest().ToString());
  close(ends[0]);
  close(ends[1]);
}

TEST(Key, MisuseIsAnInternalError) {
  EXPECT_THROW(KeyBuilder("Kernel"), InternalError);
  EXPECT_THROW(KeyBuilder(""), InternalError);
  EXPECT_THROW(KeyBuilder("k").Add("a b", "1"), InternalError);
  EXPECT_THROW(KeyBuilder("k").Add("a", "1").Add("a", "1"), InternalError);
}

TEST(Key, ParsesWhatItPrints) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    KeyBuilder builder("kind-" + std::to_string(i));
    for (int field = random() % 6; field > 0; --field) {
      std::string value(random() % 40, '\0');
      for (char& byte : value) byte = "\0\n[]=1a"[random() % 7];
      builder.Add("f" + std::to_string(field), value);
    }
    const Key key = builder.Build();
    const absl::StatusOr<Key> parsed = Key::Parse(key.Explain());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->digest(), key.digest());
    EXPECT_EQ(parsed->fields(), key.fields());
    EXPECT_EQ(parsed->kind(), key.kind());
  }
}

TEST(Key, ParseRefusesTheRest) {
  const std::pair<std::string, std::string> table[] = {
      {"", "byte 0: expected \"hackc-key 1 \""},
      {"hackc-key 2 kernel\n", "byte 0: expected \"hackc-key 1 \""},
      {"hackc-key 1 kernel", "byte 12: expected a kind and the end of the line"},
      {"hackc-key 1 \n", "byte 12: expected a kind"},
      {"hackc-key 1 k\na", "byte 14: expected name[length]=value"},
      {"hackc-key 1 k\na[x]=1\n", "byte 14: expected name[length]=value"},
      {"hackc-key 1 k\na[-1]=1\n", "byte 14: expected name[length]=value"},
      {"hackc-key 1 k\nA[1]=1\n", "byte 14: expected name[length]=value"},
      {"hackc-key 1 k\na[2]=1\n", "byte 14: expected a value of 2 bytes"},
      {"hackc-key 1 k\na[0]=1\n", "byte 14: expected a value of 0 bytes"},
      {"hackc-key 1 k\na[18446744073709551615]=1\n",
       "byte 14: expected a value of 18446744073709551615 bytes"},
      {"hackc-key 1 k\nb[1]=1\na[1]=1\n", "byte 21: expected a name after \"b\""},
      {"hackc-key 1 k\na[1]=1\na[1]=1\n", "byte 21: expected a name after \"a\""},
      {"hackc-key 1 k\na[01]=1\n", "expected canonical lengths"},
      {"hackc-key 1 k\na[+1]=1\n", "expected canonical lengths"},
  };
  for (const auto& [text, expected] : table) {
    const absl::Status status = Key::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(expected)) << text;
  }
}

TEST(ExplainDifference, NamesWhatDiffers) {
  const Key wanted = Sample().Build();
  const Key stored = KeyBuilder("kernel")
                         .Add("ir", "kernel k0 {\n  let %x\n  store %x\n}")
                         .Add("arch", "sm_80")
                         .Add("flags", "-O3")
                         .Add("nvrtc", "12.8")
                         .Build();
  EXPECT_EQ(CountDifferences(wanted, stored), 4);
  EXPECT_EQ(ExplainDifference(wanted, stored),
            "wanted kernel " + wanted.digest().ToString() + "\nstored kernel " +
                stored.digest().ToString() +
                "\n"
                "arch: \"sm_90a\" (stored: \"sm_80\")\n"
                "ir: from line 2 of 3 (stored: of 4)\n"
                "  -   let %x\n"
                "  -   store %x\n"
                "  +   store %y\n"
                "nvrtc: no such field (stored: \"12.8\")\n"
                "version: \"3\" (stored key has no such field)\n");
}

TEST(ExplainDifference, StaysShortForLongTexts) {
  std::string many, line(5000, 'x');
  for (int i = 0; i < 1000; ++i) many += "line " + std::to_string(i) + "\n";
  const Key wanted = KeyBuilder("k").Add("many", many).Add("wide", line + "A" + line).Build();
  const Key stored = KeyBuilder("k").Add("many", "").Add("wide", line + "B" + line).Build();
  const std::string text = ExplainDifference(wanted, stored);
  EXPECT_LT(text.size(), 1500u) << text;
  EXPECT_THAT(text, testing::HasSubstr("  + line 7\n  + ... 992 more lines\n"));
  EXPECT_THAT(text, testing::HasSubstr("xxxAxxx"));
  EXPECT_THAT(text, testing::HasSubstr("xxxBxxx"));
}

TEST(ExplainDifference, EqualKeysAndOtherKinds) {
  const Key key = Sample().Build();
  EXPECT_THAT(ExplainDifference(key, key), testing::EndsWith("\nequal\n"));
  EXPECT_EQ(CountDifferences(key, key), 0);
  const Key other = KeyBuilder("program").Build();
  EXPECT_EQ(CountDifferences(key, other), 5);
  EXPECT_THAT(ExplainDifference(key, other), testing::HasSubstr("stored program sha256:"));
  EXPECT_THAT(
      ExplainDifference(KeyBuilder("k").Add("a", "\x1b[31m").Build(), KeyBuilder("k").Build()),
      testing::HasSubstr("a: \"\\x1b[31m\" (stored key has no such field)"));
}

}  // namespace
}  // namespace hackc::cache

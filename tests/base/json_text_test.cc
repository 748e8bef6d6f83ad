// SPDX-License-Identifier: MIT
#include "base/json_text.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/client/status_matcher.h"

namespace hackc {
namespace {

using absl::StatusCode;
using client::Fails;
using client::Ok;
using nlohmann::json;

TEST(JsonText, ReadsEveryKindOfValue) {
  const std::string text =
      R"({"a": [1, -2, 2.5, true, null, "x", [], {"b": {}}], "c": {"a": {"a": 18446744073709551615}}})";
  auto parsed = ParseJson(text);
  ASSERT_THAT(parsed, Ok());
  EXPECT_EQ(*parsed, json::parse(text));
  parsed = ParseJson("\xef\xbb\xbf[7]");
  ASSERT_THAT(parsed, Ok());
  EXPECT_EQ((*parsed)[0], 7);
  EXPECT_THAT(ParseJson("3"), Ok());
}

TEST(JsonText, AKeyGivenTwiceIsNamed) {
  for (auto [text, path] : {std::make_pair(R"({"a": 1, "a": 1})", "a: given twice"),
                            {R"({"a": {"b": 1, "c": {}, "b": 2}})", "a.b: given twice"},
                            {R"({"a": [{}, {"b": 1}, {"b": 1, "b": 2}]})", "a[2].b: given twice"},
                            {R"([[0, {"b": 1, "b": 2}]])", "[0][1].b: given twice"}}) {
    EXPECT_THAT(ParseJson(text), Fails(StatusCode::kInvalidArgument, path)) << text;
  }
  EXPECT_THAT(ParseJson(R"({"a": {"b": 1}, "b": {"a": [{"a": 1}, {"a": 1}]}})"), Ok());
}

TEST(JsonText, LimitsHold) {
  EXPECT_THAT(ParseJson("[[[]]]", {.depth = 3}), Ok());
  EXPECT_THAT(ParseJson("[[[{}]]]", {.depth = 3}),
              Fails(StatusCode::kInvalidArgument, "nested deeper than 3 levels"));
  EXPECT_THAT(ParseJson(std::string(1000000, '[')),
              Fails(StatusCode::kInvalidArgument, "nested deeper than 32 levels"));
  EXPECT_THAT(ParseJson(R"({"a": [1, 2, 3]})", {.elements = 3}), Ok());
  EXPECT_THAT(ParseJson(R"({"a": [1, 2, 3, 4]})", {.elements = 3}),
              Fails(StatusCode::kInvalidArgument, "a: more than 3 elements"));
}

TEST(JsonText, PathsBeginWithTheDocumentsName) {
  for (auto [text, expected] :
       {std::make_pair(R"({"a": {"b": 1, "b": 2}})", "config.a.b: given twice"),
        {R"([{"b": 1, "b": 2}])", "config[0].b: given twice"},
        {R"({"a": [1, 2, 3, 4]})", "config.a: more than 3 elements"},
        {"[[[]]]", "config: nested deeper than 2 levels"},
        {"{", "config: not JSON: "},
        {"[                            ]", "config: expected at most 29 bytes of JSON, got 30"}}) {
    const auto status =
        ParseJson(text, {.bytes = 29, .depth = 2, .elements = 3}, "config").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(expected));
  }
}

// A message is one short line whatever the text holds.
TEST(JsonText, MessagesArePlainText) {
  const std::string key(1 << 20, 'k'), line = R"("a\n\u00e9b")";
  for (const std::string& name : {"\"" + key + "\"", line}) {
    const auto status = ParseJson("{" + name + ": 1, " + name + ": 2}").status();
    EXPECT_THAT(std::string(status.message()), testing::EndsWith(": given twice"));
    EXPECT_LT(status.message().size(), 400);
    for (char c : status.message()) EXPECT_TRUE(c >= ' ' && c < 127);
  }
}

TEST(JsonText, SaysWhereItIsNoJson) {
  EXPECT_THAT(ParseJson("{\"a\":\n oops}"),
              Fails(StatusCode::kInvalidArgument, "not JSON: parse error at line 2, column 2"));
  for (const char* text : {"", "{", "[1] 2", "NaN", "{\"a\": \"\xff\"}"}) {
    EXPECT_THAT(ParseJson(text), Fails(StatusCode::kInvalidArgument, "not JSON")) << text;
  }
}

}  // namespace
}  // namespace hackc

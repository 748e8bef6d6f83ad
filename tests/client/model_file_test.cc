// SPDX-License-Identifier: MIT
#include "client/model_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/client/status_matcher.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

class ModelFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("hackc_model_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

TEST_F(ModelFile, ReadsAHuggingFaceConfig) {
  auto model = ReadModelFile(
      Write("tiny.json", R"({"model_type": "llama", "hidden_size": 64, "rope_scaling": null,
                       "architectures": ["LlamaForCausalLM"], "rope_theta": 1e6, "tie": true})"));
  ASSERT_THAT(model, Ok());
  EXPECT_EQ(model->name(), "tiny");
  const auto& fields = model->config().fields();
  EXPECT_EQ(fields.at("model_type").string_value(), "llama");
  EXPECT_EQ(fields.at("hidden_size").number_value(), 64);
  EXPECT_EQ(fields.at("rope_theta").number_value(), 1e6);
  EXPECT_TRUE(fields.at("rope_scaling").has_null_value());
  EXPECT_TRUE(fields.at("tie").bool_value());
  EXPECT_EQ(fields.at("architectures").list_value().values(0).string_value(), "LlamaForCausalLM");
}

TEST_F(ModelFile, ReadsAFolderAndTakesItsName) {
  Write("My-Model/config.json", R"({"architectures": ["Qwen2ForCausalLM"]})");
  for (std::string path : {"My-Model", "My-Model/", "My-Model/config.json"}) {
    auto model = ReadModelFile((folder_ / path).string());
    ASSERT_THAT(model, Ok()) << path;
    EXPECT_EQ(model->name(), "My-Model") << path;
  }
}

TEST_F(ModelFile, ReadsADescription) {
  auto model = ReadModelFile(Write("d.json", R"({"name": "q", "config": {"model_type": "qwen2"},
      "dtype": "DTYPE_BFLOAT16", "seq": {"min": 1, "max": 2048}, "layers": 2})"));
  ASSERT_THAT(model, Ok());
  EXPECT_EQ(model->name(), "q");
  EXPECT_EQ(model->dtype(), v1::DTYPE_BFLOAT16);
  EXPECT_EQ(model->seq().max(), 2048);
  EXPECT_EQ(model->layers(), 2);
  EXPECT_EQ(model->config().fields().at("model_type").string_value(), "qwen2");
}

TEST_F(ModelFile, EveryShippedDescriptionIsReadable) {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(HACKC_SOURCE_DIR) / "models")) {
    if (entry.path().extension() != ".json") continue;
    auto model = ReadModelFile(entry.path().string());
    EXPECT_THAT(model, Ok()) << entry.path();
    if (!model.ok()) continue;
    EXPECT_TRUE(model->config().fields().count("model_type")) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

TEST_F(ModelFile, SaysWhereTheJsonIsWrong) {
  EXPECT_THAT(
      ReadModelFile(Write("bad.json", "{\"model_type\": \"llama\",\n  \"hidden_size\": oops}")),
      Fails(StatusCode::kInvalidArgument, "not JSON: parse error at line 2, column 18"));
  EXPECT_THAT(ReadModelFile(Write("empty.json", "")),
              Fails(StatusCode::kInvalidArgument, "not JSON"));
  EXPECT_THAT(ReadModelFile(Write("binary.json",
                                  "\x7f"
                                  "ELF\x01\x02")),
              Fails(StatusCode::kInvalidArgument, "not JSON"));
}

TEST_F(ModelFile, SaysWhatTheShapeShouldBe) {
  EXPECT_THAT(ParseModel("[1, 2]", "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "m.json: expected a JSON object, got array"));
  EXPECT_THAT(ParseModel(R"({"foo": 1})", "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "expected a Hugging Face config.json"));
  EXPECT_THAT(ParseModel(R"({"config": 5})", "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "config: expected a JSON object, got number"));
  EXPECT_THAT(ParseModel(R"({"config": {}, "seq": {"min": "x"}})", "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "seq.min"));
  EXPECT_THAT(ParseModel(R"({"config": {}, "sequence": 5})", "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "sequence"));
}

TEST_F(ModelFile, AKeyGivenTwiceIsRefused) {
  EXPECT_THAT(
      ParseModel(R"({"model_type": "llama", "rope": {"theta": 1, "theta": 2}})", "m.json", "m"),
      Fails(StatusCode::kInvalidArgument, "m.json: rope.theta: given twice"));
}

TEST_F(ModelFile, AByteOrderMarkIsPassedOver) {
  EXPECT_THAT(ParseModel("\xef\xbb\xbf{\"model_type\": \"llama\"}", "m.json", "m"), Ok());
}

TEST_F(ModelFile, RefusesWhatCannotBeRead) {
  EXPECT_THAT(ReadModelFile((folder_ / "none.json").string()),
              Fails(StatusCode::kInvalidArgument, "none.json: no such file"));
  EXPECT_THAT(ReadModelFile(folder_.string()),
              Fails(StatusCode::kInvalidArgument, "the folder has no config.json"));
  EXPECT_THAT(ReadModelFile("/dev/null"),
              Fails(StatusCode::kInvalidArgument, "not a regular file"));
  std::string secret = Write("secret.json", "{}");
  fs::permissions(secret, fs::perms::none);
  if (access(secret.c_str(), R_OK) != 0) {  // root may read everything
    EXPECT_THAT(ReadModelFile(secret), Fails(StatusCode::kInvalidArgument, "cannot open"));
  }
  EXPECT_THAT(ReadModelFile(Write("big.json", std::string(kMaxModelFileBytes + 1, ' '))),
              Fails(StatusCode::kInvalidArgument, "larger than the limit of 1048576 bytes"));
}

TEST_F(ModelFile, DeepNestingIsRefusedNotFollowed) {
  std::string deep = R"({"model_type": "llama", "x": )" + std::string(100000, '[') +
                     std::string(100000, ']') + "}";
  EXPECT_THAT(ParseModel(deep, "m.json", "m"),
              Fails(StatusCode::kInvalidArgument, "m.json: nested deeper than 32 levels"));
}

}  // namespace
}  // namespace hackc::client

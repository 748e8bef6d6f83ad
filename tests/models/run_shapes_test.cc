// SPDX-License-Identifier: MIT
// What `hackc-client run` asks for is what the front end takes, and enough for what it then feeds.
#include "client/cli/run_shapes.h"

#include <gmock/gmock.h>

#include <string>

#include "client/model_file.h"
#include "compiler/frontend/frontend.h"
#include "tests/support/golden.h"

namespace hackc::client {
namespace {

v1::ModelDescription Golden(const std::string& name) {
  absl::StatusOr<v1::ModelDescription> model =
      ReadModelFile(std::string(HACKC_SOURCE_DIR) + "/tests/data/golden/" + name);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::string ConfigText(const std::string& name) {
  absl::StatusOr<golden::Model> model = test::LoadGolden(name);
  EXPECT_TRUE(model.ok()) << model.status();
  return model->config_json;
}

absl::Status FrontEnd(const std::string& config, const v1::ModelDescription& model) {
  frontend::FrontendOptions options;
  options.batch = {model.batch().min(), model.batch().max()};
  options.seq = {model.seq().min(), model.seq().max()};
  options.past = {model.past().min(), model.past().max()};
  options.last_logits = true;
  return frontend::BuildGraph(config, options).status();
}

// Calls as Generator makes them: of at most seq.max tokens, after at most past.max in the cache.
// The last token is not fed.
void ExpectRoom(const v1::ModelDescription& model, int64_t prompt, int64_t tokens) {
  EXPECT_GE(model.seq().max(), 1);
  EXPECT_GE(model.past().max(), 1) << "a program without a cache";
  int64_t length = 0;
  for (; length < prompt; length += model.seq().max()) EXPECT_LE(length, model.past().max());
  if (tokens > 1) EXPECT_GE(model.past().max(), prompt + tokens - 2);
}

TEST(RunShapes, ArePowersOfTwo) {
  v1::ModelDescription model = Golden("llama");
  ASSERT_OK(ChooseRunShapes(3, 100, 40, &model));
  EXPECT_EQ(model.batch().min(), 3);
  EXPECT_EQ(model.batch().max(), 3);
  EXPECT_EQ(model.seq().min(), 1);
  EXPECT_EQ(model.seq().max(), 128);
  EXPECT_EQ(model.past().min(), 0);
  EXPECT_EQ(model.past().max(), 256);
}

// Both have 16 positions: within them, across their end and beyond.
TEST(RunShapes, TheFrontEndTakesThoseOfADynamicRope) {
  for (const char* name : {"llama-rope-dynamic", "llama-rope-dynamic-long"}) {
    const std::string config = ConfigText(name);
    for (int64_t sequences : {1, 2, 5}) {
      for (int64_t prompt = 1; prompt <= 40; ++prompt) {
        for (int64_t tokens : {1, 2, 3, 5, 8, 15, 16, 17, 60}) {
          SCOPED_TRACE(testing::Message() << name << ": " << sequences << " sequences of " << prompt
                                          << " and " << tokens);
          v1::ModelDescription model = Golden(name);
          const absl::Status chosen = ChooseRunShapes(sequences, prompt, tokens, &model);
          ASSERT_EQ(chosen.ok(), sequences == 1 || prompt + tokens - 1 <= 16) << chosen;
          if (!chosen.ok()) continue;
          ASSERT_OK(FrontEnd(config, model));
          ExpectRoom(model, prompt, tokens);
          // A prompt alone is one call.
          if (sequences == 1) EXPECT_GE(model.seq().max(), prompt);
        }
      }
    }
  }
}

TEST(RunShapes, SaysWhatADynamicRopeCannotDo) {
  v1::ModelDescription model = Golden("llama-rope-dynamic");
  const absl::Status status = ChooseRunShapes(2, 13, 16, &model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "--ids: 2 sequences of up to 13 tokens and 16 more pass the 16 positions up to which "
            "the model's dynamic rope takes several at once; expected one --ids, or fewer tokens");
}

// Every spelling of the type; a config that leaves out max_position_embeddings takes its
// architecture's default, 2048 at least.
TEST(RunShapes, FindADynamicRopeAsTheFrontEndDoes) {
  for (const char* object : {"rope_scaling", "rope_parameters"}) {
    for (const char* key : {"type", "rope_type"}) {
      for (const char* type : {"\"dynamic\"", "\"linear\""}) {
        for (const char* positions : {"", "\"max_position_embeddings\": 300,"}) {
          const std::string config =
              std::string("{\"model_type\": \"llama\", \"vocab_size\": 96, \"hidden_size\": 32,") +
              "\"intermediate_size\": 72, \"num_hidden_layers\": 1, \"num_attention_heads\": 4," +
              positions + "\"" + object + "\": {\"" + key + "\": " + type + ", \"factor\": 2.0}}";
          for (int64_t prompt : {20, 150, 290, 1500, 2040, 5000}) {
            absl::StatusOr<v1::ModelDescription> model = ParseModel(config, "m.json", "m");
            ASSERT_OK(model);
            ASSERT_OK(ChooseRunShapes(1, prompt, 9, &*model));
            EXPECT_TRUE(FrontEnd(config, *model).ok()) << config << FrontEnd(config, *model);
            ExpectRoom(*model, prompt, 9);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hackc::client

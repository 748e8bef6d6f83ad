// SPDX-License-Identifier: MIT
#include "client/runtime/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/runtime/float_convert.h"
#include "gtest/gtest.h"
#include "tests/client/fake_gpu.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::ElementsAre;

// ---- floats -------------------------------------------------------------------------------------

TEST(FloatConvert, EveryHalfSurvivesTheWayThere) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float wide = Float16ToFloat(half), brain = BFloat16ToFloat(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(Float16ToFloat(FloatToFloat16(wide))));
    } else {
      ASSERT_EQ(FloatToFloat16(wide), half);
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(brain))));
    } else {
      ASSERT_EQ(FloatToBFloat16(brain), half);
    }
  }
}

TEST(FloatConvert, RoundsToNearestAndTiesToEven) {
  // Between two neighbours a and b: the nearer one, and at the middle the one with an even last
  // bit.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    float a = Float16ToFloat(static_cast<uint16_t>(bits));
    float b = Float16ToFloat(static_cast<uint16_t>(bits + 1));
    float middle = a + (b - a) / 2;
    ASSERT_EQ(FloatToFloat16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(FloatToFloat16(std::nextafterf(middle, a)), bits);
    ASSERT_EQ(FloatToFloat16(std::nextafterf(middle, b)), bits + 1);
    ASSERT_EQ(FloatToFloat16(-std::nextafterf(middle, b)), 0x8000 | (bits + 1));
  }
  EXPECT_EQ(FloatToFloat16(65519.99f), 0x7bff);
  EXPECT_EQ(FloatToFloat16(65520.0f), 0x7c00) << "infinity";
  EXPECT_EQ(FloatToFloat16(1e30f), 0x7c00);
  EXPECT_EQ(FloatToFloat16(-INFINITY), 0xfc00);
  EXPECT_EQ(FloatToBFloat16(1.0f + 1.0f / 256), 0x3f80) << "a tie, to even";
  EXPECT_EQ(FloatToBFloat16(1.0f + 3.0f / 256), 0x3f82) << "a tie, to even";
  EXPECT_EQ(FloatToBFloat16(3.4028235e38f), 0x7f80);
}

// ---- files --------------------------------------------------------------------------------------

struct Tensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void WriteRaw(const fs::path& path, const std::string& header, const std::string& data) {
  std::ofstream file(path, std::ios::binary);
  uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header << data;
}

void WriteSafetensors(const fs::path& path, const std::vector<Tensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const Tensor& tensor : tensors) {
    absl::StrAppend(&header, ",\"", tensor.name, "\":{\"dtype\":\"", tensor.dtype,
                    "\",\"shape\":[");
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      absl::StrAppend(&header, i ? "," : "", tensor.shape[i]);
    absl::StrAppend(&header, "],\"data_offsets\":[", data.size(), ",",
                    data.size() + tensor.bytes.size(), "]}");
    data += tensor.bytes;
  }
  WriteRaw(path, header + "}", data);
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / absl::StrCat("checkpoint.", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A runtime of the tiny program, whose weights are float32 of 4 elements.
  absl::Status Load() {
    runtime_.reset();
    gpu_.emplace(TinyProgram());
    InstallTinyKernels(&*gpu_);
    auto loaded = Runtime::Load(gpu_->driver(), {TinyProgram(), gpu_->Cubins()}, 0);
    if (loaded.ok()) runtime_ = *std::move(loaded);
    return loaded.status();
  }
  absl::StatusOr<std::vector<std::string>> Bind() {
    absl::Status loaded = Load();
    if (!loaded.ok()) return loaded;
    auto checkpoint = Checkpoint::Open(folder_);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->BindTo(*runtime_);
  }
  // All weights of the tiny program, in three dtypes.
  static std::vector<Tensor> Weights() {
    return {{"model.layers.0.w", "F32", {4}, BytesOf<float>({10, 11, 12, 13})},
            {"model.layers.1.w", "BF16", {4}, BytesOf<uint16_t>({0x41a0, 0x41a8, 0x41b0, 0x41b8})},
            {"model.layers.2.w", "F16", {4}, BytesOf<uint16_t>({0x4f80, 0x4fc0, 0x5000, 0x5020})},
            {"model.final", "F32", {4}, BytesOf<float>({3, 4, 5, 6})}};
  }
  // What the program computes of id 100 must come from exactly these weights.
  void ExpectLogits() {
    ASSERT_THAT(runtime_->Prepare(nullptr), Ok());
    alignas(256) int64_t ids[1] = {100};
    alignas(256) float logits[4];
    alignas(256) char workspace[512];
    Call call;
    call.entry = "prefill";
    call.symbols = {{"seq", 1}};
    call.tensors["input_ids"] = {reinterpret_cast<CUdeviceptr>(ids), 8};
    call.tensors["logits"] = {reinterpret_cast<CUdeviceptr>(logits), 16};
    call.workspace = {reinterpret_cast<CUdeviceptr>(workspace), 512};
    ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
    for (int c = 0; c < 4; ++c) {
      const float hidden = 100 + 2 * ((10 + c) + (20 + c) + (30 + c));
      EXPECT_EQ(logits[c], hidden * (3 + c) + 0.5f + c) << c;
    }
  }

  fs::path folder_;
  std::optional<FakeGpu> gpu_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(CheckpointTest, OneFileIsBoundAndConverted) {
  WriteSafetensors(folder_ / "model.safetensors", Weights());
  auto unused = Bind();
  ASSERT_THAT(unused, Ok());
  EXPECT_THAT(*unused, ElementsAre());
  ExpectLogits();
}

TEST_F(CheckpointTest, ShardsAreFoundThroughTheIndex) {
  std::vector<Tensor> weights = Weights();
  WriteSafetensors(folder_ / "a.safetensors", {weights[3], weights[1]});
  WriteSafetensors(folder_ / "b.safetensors", {weights[0], weights[2]});
  auto write_index = [&](const std::string& of_final) {
    std::ofstream(folder_ / "model.safetensors.index.json")
        << R"({"metadata":{"total_size":64},"weight_map":{"model.layers.0.w":"b.safetensors",)"
        << R"("model.layers.1.w":"a.safetensors","model.layers.2.w":"b.safetensors",)"
        << "\"model.final\":\"" << of_final << "\"}}";
  };
  write_index("a.safetensors");
  ASSERT_THAT(Bind(), Ok());
  ExpectLogits();
  write_index("../a.safetensors");
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "leaves the folder"));
  for (std::string outside : {"..", ".", "", "/etc/passwd", "a.safetensors\\u0000"}) {
    write_index(outside);
    EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "leaves the folder")) << outside;
  }
  write_index("b.safetensors\",\"model.final\":\"a.safetensors");
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "weight_map.model.final: given twice"));
  write_index("c.safetensors");
  EXPECT_THAT(Bind(), Fails(StatusCode::kNotFound, "c.safetensors"));
  WriteSafetensors(folder_ / "a.safetensors", {weights[1]});
  write_index("a.safetensors");
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "has no tensor model.final"));
  WriteSafetensors(folder_ / "a.safetensors", {weights[3], weights[1], weights[0]});
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "model.layers.0.w is in two files"));
}

TEST_F(CheckpointTest, MissingAndSpareTensorsAreNamed) {
  std::vector<Tensor> weights = Weights();
  WriteSafetensors(folder_ / "model.safetensors", {weights[1], weights[2]});
  EXPECT_THAT(Bind(),
              Fails(StatusCode::kNotFound, "2 weights are missing: model.layers.0.w, model.final"));
  // Another name of a bound tensor is no stranger, nor is a buffer of old versions.
  Tensor alias = weights[3], spare = weights[3];
  alias.name = "lm_head.weight";
  spare.name = "spare";
  spare.bytes = BytesOf<float>({1, 2, 3, 4});
  weights.push_back(alias);
  weights.push_back(spare);
  weights.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "abcd"});
  WriteSafetensors(folder_ / "model.safetensors", weights);
  auto unused = Bind();
  ASSERT_THAT(unused, Ok());
  EXPECT_THAT(*unused, ElementsAre("spare"));
}

TEST_F(CheckpointTest, ShapesAndDtypesAreChecked) {
  std::vector<Tensor> weights = Weights();
  weights[3].shape = {2, 2};
  WriteSafetensors(folder_ / "model.safetensors", weights);
  EXPECT_THAT(Bind(), Fails(StatusCode::kInvalidArgument,
                            "model.final: expected shape [4], the file has F32 [2, 2]"));
  weights[3] = {"model.final", "I32", {4}, std::string(16, '\0')};
  WriteSafetensors(folder_ / "model.safetensors", weights);
  EXPECT_THAT(
      Bind(),
      Fails(StatusCode::kInvalidArgument,
            "model.final: no conversion from DTYPE_INT32 to DTYPE_FLOAT32; the file has I32"));
}

TEST_F(CheckpointTest, DamagedFilesAreRefused) {
  EXPECT_THAT(Bind(), Fails(StatusCode::kNotFound, "has neither model.safetensors nor"));
  EXPECT_THAT(Checkpoint::Open(folder_ / "none").status(),
              Fails(StatusCode::kNotFound, "none: no such folder"));
  const fs::path path = folder_ / "model.safetensors";
  auto refused = [&](const std::string& header, const std::string& why) {
    WriteRaw(path, header, std::string(16, 'x'));
    EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, why)) << header;
  };
  const std::string deep(100000, '[');
  refused("", "no JSON object");
  refused("{", "no JSON object");
  refused("[]", "no JSON object");
  refused(R"({"a":)" + deep, "no JSON object");
  refused(R"({"a":1})", "tensor a: no dtype");
  refused(R"({"a":{"dtype":"F99"}})", "unknown dtype 'F99'");
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "bad shape");
  refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "bad shape");
  refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
          "exceeds 64 bits");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "bad data_offsets");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", "outside the file");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}})", "outside the file");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
          "shape needs 8 bytes, data_offsets give 4");
  auto of = [](int begin, int end) {
    return absl::StrCat(R"({"dtype":"U8","shape":[)", end - begin, R"(],"data_offsets":[)", begin,
                        ",", end, "]}");
  };
  const std::string whole = absl::StrCat("{\"a\":", of(0, 8), ",\"b\":", of(8, 16));
  WriteRaw(path, absl::StrCat(whole, ",\"c\":", of(8, 8), "}"), std::string(16, 'x'));
  EXPECT_THAT(SafetensorsFile::Open(path).status(), Ok()) << "an empty tensor lies anywhere";
  refused(absl::StrCat("{\"a\":", of(0, 8), ",\"b\":", of(0, 8), "}"),
          "tensor b: begins at byte 0, the one before ends at 8");
  refused(absl::StrCat("{\"a\":", of(0, 8), ",\"b\":", of(4, 16), "}"),
          "tensor b: begins at byte 4, the one before ends at 8");
  refused(absl::StrCat("{\"a\":", of(0, 4), ",\"b\":", of(8, 16), "}"),
          "tensor b: begins at byte 8, the one before ends at 4");
  refused(absl::StrCat("{\"a\":", of(0, 12), "}"), "the tensors end at byte 12 of 16 bytes");
  refused(absl::StrCat(whole, ",\"a\":", of(0, 8), "}"), "a: given twice");
  refused(absl::StrCat(whole, ",\"__metadata__\":5}"), "__metadata__ is no JSON object of strings");
  refused(absl::StrCat(whole, ",\"__metadata__\":{\"a\":1}}"),
          "__metadata__ is no JSON object of strings");
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  refused(absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", ones, R"(],"data_offsets":[0,1]}})"),
          "a.shape: more than 32 elements");
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "not a safetensors file"));
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << "short";
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "not a safetensors file"));
  std::ofstream(path, std::ios::binary) << std::string(8, '\xff');
  EXPECT_THAT(Bind(), Fails(StatusCode::kDataLoss, "the header's length"));
}

}  // namespace
}  // namespace hackc::client

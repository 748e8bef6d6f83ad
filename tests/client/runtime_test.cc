// SPDX-License-Identifier: MIT
#include "client/runtime/runtime.h"

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/runtime/module_loader.h"
#include "gtest/gtest.h"
#include "tests/client/fake_gpu.h"
#include "tests/client/formula_builder.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

// Memory aligned as the driver's, usable as a device address of the fake GPU.
template <typename T>
class Aligned {
 public:
  explicit Aligned(size_t count, int fill = 0xff) : memory_(count * sizeof(T) + 512) {
    std::memset(memory_.data(), fill, memory_.size());
  }
  T* data() {
    auto address = reinterpret_cast<uintptr_t>(memory_.data());
    return reinterpret_cast<T*>((address + 255) / 256 * 256);
  }
  CUdeviceptr address() { return reinterpret_cast<CUdeviceptr>(data()); }

 private:
  std::vector<unsigned char> memory_;
};

float LayerWeight(int layer, int channel) { return 10.0f * (layer + 1) + channel; }
float FinalWeight(int channel) { return 3.0f + channel; }

float ExpectedLogit(int64_t id, int channel) {
  float hidden = static_cast<float>(id);
  for (int layer = 0; layer < kTinyLayers; ++layer) hidden += 2 * LayerWeight(layer, channel);
  return hidden * FinalWeight(channel) + 0.5f + channel;
}

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() : program_(TinyProgram()) {}

  absl::Status Load() {
    gpu_.emplace(program_);
    InstallTinyKernels(&*gpu_);
    return Reload();
  }
  absl::Status Reload() {
    auto loaded = Runtime::Load(gpu_->driver(), {program_, gpu_->Cubins()}, 0);
    if (loaded.ok()) runtime_ = *std::move(loaded);
    return loaded.status();
  }
  absl::Status BindAll(bool on_device = false) {
    for (const WeightInfo& weight : runtime_->weights()) {
      auto values = std::make_unique<Aligned<float>>(kTinyChannels);
      for (int c = 0; c < kTinyChannels; ++c) {
        values->data()[c] = weight.name == "model.final"
                                ? FinalWeight(c)
                                : LayerWeight(weight.name[sizeof("model.layers.") - 1] - '0', c);
      }
      absl::Status bound = runtime_->BindWeight(
          weight.name, {values->data(), weight.dtype, weight.shape, on_device});
      if (!bound.ok()) return bound;
      weights_.push_back(std::move(values));
      // A host tensor may be gone as soon as the call is back.
      if (!on_device) std::memset(weights_.back()->data(), 0xff, 4 * kTinyChannels);
    }
    return absl::OkStatus();
  }
  absl::Status Ready() {
    for (absl::Status status : {Load(), BindAll(), runtime_->Prepare(nullptr)}) {
      if (!status.ok()) return status;
    }
    gpu_->launches.clear();
    return absl::OkStatus();
  }
  Call CallAt(int64_t seq) {
    Call call;
    call.entry = "prefill";
    call.symbols = {{"seq", seq}};
    ids_.emplace(seq);
    for (int64_t t = 0; t < seq; ++t) ids_->data()[t] = 100 + 7 * t;
    logits_.emplace(seq * kTinyChannels);
    workspace_.emplace(4096);
    auto bytes = runtime_->WorkspaceBytes("prefill", call.symbols);
    call.workspace = {workspace_->address(), bytes.ok() ? *bytes : 0};
    call.tensors["input_ids"] = {ids_->address(), 8 * seq};
    call.tensors["logits"] = {logits_->address(), 4 * seq * kTinyChannels};
    return call;
  }
  void ExpectLogits(int64_t seq) {
    for (int64_t i = 0; i < seq * kTinyChannels; ++i) {
      EXPECT_EQ(logits_->data()[i], ExpectedLogit(100 + 7 * (i / kTinyChannels), i % kTinyChannels))
          << i;
    }
    EXPECT_TRUE(std::isnan(logits_->data()[seq * kTinyChannels])) << "written past the end";
  }

  v1::Program program_;
  std::optional<FakeGpu> gpu_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<std::unique_ptr<Aligned<float>>> weights_;
  std::optional<Aligned<int64_t>> ids_;
  std::optional<Aligned<float>> logits_;
  std::optional<Aligned<std::byte>> workspace_;
};

TEST_F(RuntimeTest, ComputesWhatTheProgramSays) {
  ASSERT_THAT(Ready(), Ok());
  for (int64_t seq : {1, 13, 16, 17, 64}) {
    Call call = CallAt(seq);
    ASSERT_THAT(runtime_->Run(call, nullptr), Ok()) << seq;
    ExpectLogits(seq);
  }
  EXPECT_EQ(gpu_->pushed, 0) << "the caller's context was not restored";
}

TEST_F(RuntimeTest, LaunchesFollowTheContract) {
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(17);
  auto stream = reinterpret_cast<CUstream>(0x123);
  ASSERT_THAT(runtime_->Run(call, stream), Ok());
  std::vector<std::string> names;
  for (const FakeGpu::Launch& launch : gpu_->launches) names.push_back(launch.name);
  EXPECT_THAT(names,
              ElementsAre("embed", "layer", "copy", "layer", "copy", "layer", "copy", "head"));
  std::set<float*> layer_weights;
  for (const FakeGpu::Launch& launch : gpu_->launches) {
    EXPECT_THAT(launch.grid, ElementsAre(2, 1, 1)) << launch.name;
    EXPECT_THAT(launch.block, ElementsAre(128, 1, 1));
    EXPECT_EQ(launch.shared, launch.name == "layer" ? 65536u : 0u);
    EXPECT_EQ(launch.stream, stream);
    if (launch.name != "layer") continue;
    EXPECT_EQ(launch.Int(3), 17);
    EXPECT_EQ(launch.Pointer<std::byte>(0), workspace_->data());
    EXPECT_EQ(launch.Pointer<std::byte>(2), workspace_->data() + 512);  // ceil(17 * 16 / 256) * 256
    layer_weights.insert(launch.Pointer<float>(1));
  }
  EXPECT_EQ(layer_weights.size(), 3u) << "each layer has its own tensor";
  EXPECT_TRUE(gpu_->attributes_set.count({CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536}));
  EXPECT_EQ(gpu_->attributes_set.size(), 1u) << "only one kernel needs more than the default";
}

TEST_F(RuntimeTest, RunsNeitherAllocateNorSynchronise) {
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(5);
  size_t allocations = gpu_->allocations.size();
  int synchronized = gpu_->synchronized;
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  EXPECT_EQ(gpu_->allocations.size(), allocations);
  EXPECT_EQ(gpu_->synchronized, synchronized);
}

TEST_F(RuntimeTest, TakesNewAddressesAndShapesAtEachRun) {
  ASSERT_THAT(Ready(), Ok());
  for (int round = 0; round < 40; ++round) {  // more shapes than launch lists are kept
    int64_t seq = 1 + (round * 7) % 40;
    std::optional<Aligned<float>> keep;  // keeps the old memory, so that the new one lies elsewhere
    if (logits_) keep.emplace(std::move(*logits_));
    Call call = CallAt(seq);
    ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
    ExpectLogits(seq);
  }
}

TEST_F(RuntimeTest, DeviceWeightsAreUsedWhereTheyLie) {
  ASSERT_THAT(Load(), Ok());
  size_t before = gpu_->allocations.size();
  ASSERT_THAT(BindAll(/*on_device=*/true), Ok());
  EXPECT_EQ(gpu_->allocations.size(), before);
  ASSERT_THAT(runtime_->Prepare(nullptr), Ok());
  Call call = CallAt(3);
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  ExpectLogits(3);
}

TEST_F(RuntimeTest, ReleasesMemory) {
  ASSERT_THAT(Load(), Ok());
  ASSERT_THAT(BindAll(), Ok());
  size_t bound = gpu_->allocations.size();
  ASSERT_THAT(runtime_->Prepare(nullptr), Ok());
  // The three layer weights were only read by prepare; one slab of prepared ones came.
  EXPECT_EQ(gpu_->allocations.size(), bound - 3 + 1);
  runtime_.reset();
  EXPECT_TRUE(gpu_->allocations.empty());
  EXPECT_EQ(gpu_->contexts, 0);
}

TEST_F(RuntimeTest, UnpreparedElementsShowAsNan) {
  program_.mutable_prepare(0)->mutable_repeat()->set_count(kTinyLayers - 1);  // forgets one layer
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(2);
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  EXPECT_TRUE(std::isnan(logits_->data()[0]));
}

TEST_F(RuntimeTest, CapturesAGraph) {
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(9);
  auto graph = runtime_->Capture(call);
  ASSERT_THAT(graph, Ok());
  EXPECT_TRUE(gpu_->launches.empty()) << "capturing must not run";
  ASSERT_THAT((*graph)->Launch(nullptr), Ok());
  ExpectLogits(9);
  Call wrong = CallAt(9);
  wrong.tensors.erase("logits");
  EXPECT_THAT(runtime_->Capture(wrong), Fails(StatusCode::kInvalidArgument, "logits: not given"));
  // The shape is in the grid and in the workspace's offsets.
  EXPECT_THAT((*graph)->SetSymbols({{"seq", 8}}),
              Fails(StatusCode::kFailedPrecondition, "change shapes or grids"));
  EXPECT_THAT((*graph)->SetSymbols({{"seq", 65}}), Fails(StatusCode::kInvalidArgument, "seq = 65"));
  graph->reset();
  EXPECT_EQ(gpu_->graphs, 0);
}

TEST_F(RuntimeTest, CapturesOneKernelAndTellsItsTensors) {
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(9);
  auto graph = runtime_->Capture(call, {"layer"});
  ASSERT_THAT(graph, Ok());
  ASSERT_THAT((*graph)->Launch(nullptr), Ok());
  EXPECT_EQ(gpu_->launches.size(), size_t{kTinyLayers});
  // All launches are told of, the one that was captured and those left out.
  const LaunchList& launches = (*graph)->launches();
  EXPECT_EQ(launches.KernelName(0), "embed");
  EXPECT_EQ(launches.KernelName(launches.size() - 1), "head");
  auto arguments = launches.Arguments(launches.size() - 1);
  ASSERT_THAT(arguments, Ok());
  const LaunchArgument& written = arguments->back();
  EXPECT_TRUE(written.written);
  EXPECT_EQ(written.name, "logits");
  EXPECT_EQ(written.address, call.tensors.at("logits").address);
  EXPECT_EQ(written.bytes, call.tensors.at("logits").bytes);
  EXPECT_THAT(runtime_->Capture(call, {"layer", "nothing"}),
              Fails(StatusCode::kNotFound, "prefill launches no kernel nothing"));
}

TEST_F(RuntimeTest, TakesTheEntryPointWhoseRangesHoldTheValues) {
  v1::EntryPoint* few = program_.mutable_entry_points(0);
  v1::Symbol* seq = few->add_symbols();
  seq->set_name("seq"), seq->set_min(1), seq->set_max(8);
  v1::EntryPoint many = *few;
  many.mutable_symbols(0)->set_min(10);
  many.mutable_symbols(0)->set_max(64);
  many.mutable_steps()->DeleteSubrange(1, 1);  // tells them apart: no layers
  *program_.add_entry_points() = many;
  ASSERT_THAT(Ready(), Ok());
  for (auto [value, launches] : {std::pair{8, 2 + kTinyLayers}, {64, 2}, {1, 2 + kTinyLayers}}) {
    Call call = CallAt(value);
    gpu_->launches.clear();
    ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
    EXPECT_GE(gpu_->launches.size(), static_cast<size_t>(launches)) << value;
    EXPECT_EQ(gpu_->launches.size() > 4, value <= 8) << value;
  }
  EXPECT_THAT(
      runtime_->WorkspaceBytes("prefill", {{"seq", 9}}),
      Fails(StatusCode::kInvalidArgument, "prefill is compiled for seq 1..8; for seq 10..64"));
}

TEST_F(RuntimeTest, ReportsTensors) {
  ASSERT_THAT(Load(), Ok());
  auto infos = runtime_->Tensors("prefill", {{"seq", 5}});
  ASSERT_THAT(infos, Ok());
  ASSERT_EQ(infos->size(), 2u);
  EXPECT_EQ((*infos)[0].name, "input_ids");
  EXPECT_EQ((*infos)[1].kind, v1::Buffer::OUTPUT);
  EXPECT_THAT((*infos)[1].shape, ElementsAre(5, 4));
  EXPECT_EQ((*infos)[1].bytes, 80);
  EXPECT_EQ(runtime_->weights().size(), 4u);
  EXPECT_EQ(runtime_->weights()[2].name, "model.layers.2.w");
}

TEST_F(RuntimeTest, RefusesMisuseOfRun) {
  ASSERT_THAT(Ready(), Ok());
  auto run = [&](auto change) {
    Call call = CallAt(4);
    change(call);
    return runtime_->Run(call, nullptr);
  };
  auto invalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(run([](Call& c) { c.symbols["seq"] = 65; }),
              Fails(invalid, "symbol seq = 65, the program is compiled for 1..64"));
  EXPECT_THAT(run([](Call& c) { c.symbols["seq"] = 0; }), Fails(invalid, "seq = 0"));
  EXPECT_THAT(run([](Call& c) { c.symbols.clear(); }), Fails(invalid, "symbol seq has no value"));
  EXPECT_THAT(run([](Call& c) { c.symbols["past"] = 1; }), Fails(invalid, "unknown symbol"));
  EXPECT_THAT(run([](Call& c) { c.entry = "decode"; }),
              Fails(StatusCode::kNotFound, "'decode' does not exist; the program has prefill"));
  EXPECT_THAT(run([](Call& c) { c.tensors.erase("input_ids"); }),
              Fails(invalid, "input_ids: not given"));
  EXPECT_THAT(run([](Call& c) {
                c.tensors["mask"] = {256, 0};
              }),
              Fails(invalid, "mask: prefill has no tensor of this name"));
  EXPECT_THAT(run([](Call& c) { c.tensors["logits"].bytes = 32; }),
              Fails(invalid, "logits: expected 64 bytes, got 32"));
  EXPECT_THAT(run([](Call& c) { c.tensors["logits"].address += 8; }),
              Fails(invalid, "is not aligned to 16 bytes"));
  EXPECT_THAT(run([](Call& c) { c.tensors["input_ids"].address = 0; }),
              Fails(invalid, "input_ids: null pointer"));
  EXPECT_THAT(run([](Call& c) { c.workspace.bytes = 511; }),
              Fails(invalid, "workspace: expected at least 512 bytes"));
  EXPECT_THAT(run([](Call& c) { c.workspace.address += 64; }), Fails(invalid, "aligned to 256"));
  EXPECT_THAT(run([](Call& c) { c.workspace.address = 0; }),
              Fails(invalid, "workspace: null pointer"));
  EXPECT_TRUE(gpu_->launches.empty()) << "nothing may run before all is checked";
  Call good = CallAt(4);
  ASSERT_THAT(runtime_->Run(good, nullptr), Ok()) << "still usable after every refusal";
  ExpectLogits(4);
}

TEST_F(RuntimeTest, RefusesMisuseOfWeights) {
  ASSERT_THAT(Load(), Ok());
  float values[8] = {};
  auto invalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(runtime_->BindWeight("model.layers.3.w", {values, v1::DTYPE_FLOAT32, {4}, false}),
              Fails(StatusCode::kNotFound, "weight model.layers.3.w: the program has none"));
  EXPECT_THAT(runtime_->BindWeight("model.final", {values, v1::DTYPE_FLOAT32, {5}, false}),
              Fails(invalid, "expected DTYPE_FLOAT32 [4], got DTYPE_FLOAT32 [5]"));
  EXPECT_THAT(runtime_->BindWeight("model.final", {values, v1::DTYPE_FLOAT32, {4, 1}, false}),
              Fails(invalid, "got DTYPE_FLOAT32 [4, 1]"));
  EXPECT_THAT(runtime_->BindWeight("model.final", {values, v1::DTYPE_BFLOAT16, {4}, false}),
              Fails(invalid, "got DTYPE_BFLOAT16 [4]"));
  EXPECT_THAT(runtime_->BindWeight("model.final", {nullptr, v1::DTYPE_FLOAT32, {4}, false}),
              Fails(invalid, "null pointer"));
  ASSERT_THAT(runtime_->BindWeight("model.final", {values, v1::DTYPE_FLOAT32, {4}, false}), Ok());
  EXPECT_THAT(runtime_->Prepare(nullptr), Fails(StatusCode::kFailedPrecondition,
                                                "3 weights are not bound: model.layers.0.w, "));
  Call call = CallAt(4);
  EXPECT_THAT(runtime_->Run(call, nullptr),
              Fails(StatusCode::kFailedPrecondition, "call prepare first"));
  ASSERT_THAT(BindAll(), Ok());
  gpu_->memory_limit = 16;
  EXPECT_THAT(runtime_->Prepare(nullptr), Fails(StatusCode::kResourceExhausted,
                                                "for prepared weights: CUDA_ERROR_OUT_OF_MEMORY"));
  gpu_->memory_limit = SIZE_MAX;
  ASSERT_THAT(runtime_->Prepare(nullptr), Ok());
  EXPECT_THAT(runtime_->Prepare(nullptr), Fails(StatusCode::kFailedPrecondition, "already done"));
  EXPECT_THAT(runtime_->BindWeight("model.final", {values, v1::DTYPE_FLOAT32, {4}, false}),
              Fails(StatusCode::kFailedPrecondition, "bound after prepare"));
}

TEST_F(RuntimeTest, MisalignedDeviceWeightIsNamed) {
  ASSERT_THAT(Load(), Ok());
  ASSERT_THAT(BindAll(), Ok());
  Aligned<float> values(16);
  ASSERT_THAT(
      runtime_->BindWeight("model.layers.1.w", {values.data() + 1, v1::DTYPE_FLOAT32, {4}, true}),
      Ok());
  EXPECT_THAT(runtime_->Prepare(nullptr),
              Fails(StatusCode::kInvalidArgument, "launch 1 (double, iteration 1): argument in"));
}

TEST_F(RuntimeTest, KernelsAreNotUsedOutsideTheirProvenRange) {
  program_.mutable_kernels(kLayer)->mutable_valid(0)->set_max(32);
  ASSERT_THAT(Ready(), Ok());
  Call fits = CallAt(32);
  EXPECT_THAT(runtime_->Run(fits, nullptr), Ok());
  Call call = CallAt(33);
  EXPECT_THAT(runtime_->Run(call, nullptr),
              Fails(StatusCode::kInvalidArgument,
                    "seq = 33 is outside 1..32, for which the kernel layer is proven"));
}

TEST_F(RuntimeTest, DriverErrorsNameTheLaunch) {
  ASSERT_THAT(Ready(), Ok());
  gpu_->next_launch_result = CUDA_ERROR_LAUNCH_FAILED;
  Call call = CallAt(4);
  EXPECT_THAT(
      runtime_->Run(call, nullptr),
      Fails(StatusCode::kInternal, "launch 0 (embed, iteration 0): launch: CUDA_ERROR_FAKE"));
}

TEST_F(RuntimeTest, RefusesADeviceThatDoesNotFit) {
  ASSERT_THAT(Load(), Ok());
  runtime_.reset();
  gpu_->minor = 3;
  EXPECT_THAT(Reload(), Fails(StatusCode::kFailedPrecondition,
                              "compiled for sm_90a, the device (Fake GPU) is sm_93"));
  gpu_->minor = 0;
  gpu_->shared_optin = 65536;
  EXPECT_THAT(Reload(), Fails(StatusCode::kFailedPrecondition,
                              "kernel layer needs 66048 bytes of shared memory"));
  EXPECT_EQ(gpu_->contexts, 0);
  EXPECT_THAT(Runtime::Load(gpu_->driver(), {program_, gpu_->Cubins()}, 7),
              Fails(StatusCode::kInternal, "cuDeviceGet of device 7"));
}

TEST_F(RuntimeTest, RefusesCodeThatIsNotTheContracts) {
  ASSERT_THAT(Load(), Ok());
  gpu_->wrong_parameter_offset = 8;
  EXPECT_THAT(Reload(), Fails(StatusCode::kDataLoss, "kernel double: parameter 0 (in) is at 8"));
  gpu_->wrong_parameter_offset = 0;
  auto cubins = gpu_->Cubins();
  cubins[kHead] = "rubbish";
  EXPECT_THAT(Runtime::Load(gpu_->driver(), {program_, cubins}, 0),
              Fails(StatusCode::kInternal, "kernel head: cuModuleLoadData"));
  cubins.pop_back();
  EXPECT_THAT(Runtime::Load(gpu_->driver(), {program_, cubins}, 0),
              Fails(StatusCode::kInvalidArgument, "5 kernels, got 4 cubins"));
}

TEST_F(RuntimeTest, WorkspaceBuffersMustFit) {
  *program_.mutable_buffers(kNext)->mutable_offset() = Const(512);
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(16);
  EXPECT_THAT(runtime_->Run(call, nullptr),
              Fails(StatusCode::kOutOfRange, "next at 512 with 256 bytes does not fit"));
  *program_.mutable_buffers(kNext)->mutable_offset() = Const(128);
  ASSERT_THAT(Ready(), Ok());
  call = CallAt(1);
  EXPECT_THAT(runtime_->Run(call, nullptr), Fails(StatusCode::kOutOfRange, "next at 128"));
}

TEST_F(RuntimeTest, GridsMustBeLaunchable) {
  *program_.mutable_kernels(kHead)->mutable_grid(1) = Op(v1::DimExpr::MUL, Sym("seq"), Const(4096));
  ASSERT_THAT(Ready(), Ok());
  Call call = CallAt(16);
  EXPECT_THAT(runtime_->Run(call, nullptr), Fails(StatusCode::kOutOfRange, "grid[1] = "));
  // An empty grid computes nothing and is no error.
  *program_.mutable_kernels(kHead)->mutable_grid(1) =
      Op(v1::DimExpr::FLOOR_DIV, Sym("seq"), Const(16));
  ASSERT_THAT(Ready(), Ok());
  call = CallAt(15);
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  EXPECT_EQ(gpu_->launches.back().name, "copy");
}

TEST_F(RuntimeTest, OffsetsOfArgumentsAreAdded) {
  // head reads the last token only and writes the last row.
  v1::Launch* head = program_.mutable_entry_points(0)->mutable_steps(2)->mutable_launch();
  v1::DimExpr last =
      Op(v1::DimExpr::MUL, Op(v1::DimExpr::ADD, Sym("seq"), Const(-1)), Const(4 * kTinyChannels));
  *head->mutable_args(0)->mutable_offset() = last;
  *head->mutable_args(3)->mutable_offset() = last;
  ASSERT_THAT(Ready(), Ok());
  gpu_->kernels["head"] = [](const FakeGpu::Launch& launch) {
    for (int c = 0; c < kTinyChannels; ++c) {
      launch.Pointer<float>(3)[c] = launch.Pointer<float>(0)[c];
    }
  };
  Call call = CallAt(3);
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  EXPECT_TRUE(std::isnan(logits_->data()[7]));
  EXPECT_EQ(logits_->data()[8], 114 + 2 * (10 + 20 + 30));
}

// A cache of which each layer has its own tensor, as key/value caches are.
TEST_F(RuntimeTest, EachLayerHasItsOwnState) {
  v1::Buffer* cache = program_.add_buffers();
  cache->set_id(program_.buffers_size() - 1);
  cache->set_name("cache");
  cache->set_kind(v1::Buffer::STATE);
  cache->set_dtype(v1::DTYPE_FLOAT32);
  cache->set_weight_name("layers.{layer}.cache");
  cache->set_repeat_count(kTinyLayers);
  cache->set_layer_step(1);
  *cache->add_shape() = Sym("seq");
  *cache->add_shape() = Const(kTinyChannels);
  // Each layer leaves its result in its cache instead of the workspace.
  v1::Step::Repeat* layers = program_.mutable_entry_points(0)->mutable_steps(1)->mutable_repeat();
  layers->mutable_steps(0)->mutable_launch()->mutable_args(2)->set_buffer(cache->id());
  layers->mutable_steps(1)->mutable_launch()->mutable_args(0)->set_buffer(cache->id());
  ASSERT_THAT(Ready(), Ok());
  auto infos = runtime_->Tensors("prefill", {{"seq", 6}});
  ASSERT_THAT(infos, Ok());
  ASSERT_EQ(infos->size(), 5u);
  EXPECT_EQ((*infos)[4].name, "layers.2.cache");
  EXPECT_EQ((*infos)[4].kind, v1::Buffer::STATE);
  Call call = CallAt(6);
  EXPECT_THAT(runtime_->Run(call, nullptr),
              Fails(StatusCode::kInvalidArgument, "layers.0.cache: not given"));
  std::vector<Aligned<float>> caches;
  for (int layer = 0; layer < kTinyLayers; ++layer) {
    caches.emplace_back(6 * kTinyChannels);
    call.tensors["layers." + std::to_string(layer) + ".cache"] = {caches[layer].address(), 96};
  }
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  ExpectLogits(6);
  float hidden = 100;
  for (int layer = 0; layer < kTinyLayers; ++layer) {
    hidden += 2 * LayerWeight(layer, 0);
    EXPECT_EQ(caches[layer].data()[0], hidden) << layer;
  }
}

TEST_F(RuntimeTest, BuildsTensorMapsAndClusters) {
  v1::Kernel* head = program_.mutable_kernels(kHead);
  head->clear_params();
  v1::Param* map = head->add_params();
  map->set_kind(v1::Param::TENSOR_MAP);
  map->set_name("hidden_map");
  map->set_size(128);
  map->set_alignment(16);
  v1::TensorMapRecipe* recipe = map->mutable_tensor_map();
  recipe->set_dtype(v1::DTYPE_FLOAT32);
  *recipe->add_dims() = Const(kTinyChannels);
  *recipe->add_dims() = Sym("seq");
  *recipe->add_strides() = Const(16);
  recipe->add_box(4);
  recipe->add_box(8);
  recipe->set_swizzle_bytes(32);
  v1::Param* out = head->add_params();
  out->set_name("logits");
  out->set_offset(128);
  out->set_size(8);
  out->set_written(true);
  head->set_cluster(0, 2);
  v1::Launch* launch = program_.mutable_entry_points(0)->mutable_steps(2)->mutable_launch();
  launch->clear_args();
  launch->add_args()->set_buffer(kHidden);
  launch->add_args()->set_buffer(kLogits);
  ASSERT_THAT(Ready(), Ok());
  gpu_->kernels["head"] = [](const FakeGpu::Launch&) {};
  Call call = CallAt(11);
  ASSERT_THAT(runtime_->Run(call, nullptr), Ok());
  const FakeGpu::Launch& seen = gpu_->launches.back();
  EXPECT_THAT(seen.cluster, ElementsAre(2, 1, 1));
  uint64_t words[8];
  std::memcpy(words, seen.parameters.data(), sizeof(words));
  EXPECT_THAT(words, ElementsAre(workspace_->address(), CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, 4, 11,
                                 16, 4, CU_TENSOR_MAP_SWIZZLE_32B));
  EXPECT_EQ(seen.Pointer<float>(1), logits_->data());
}

TEST(ModuleLoader, ArchesAndDevices) {
  EXPECT_TRUE(ArchRunsOn("sm_90a", 9, 0));
  EXPECT_FALSE(ArchRunsOn("sm_90a", 9, 1));
  EXPECT_FALSE(ArchRunsOn("sm_90a", 10, 0));
  EXPECT_TRUE(ArchRunsOn("sm_80", 8, 0));
  EXPECT_TRUE(ArchRunsOn("sm_80", 8, 9));
  EXPECT_FALSE(ArchRunsOn("sm_89", 8, 6));
  EXPECT_FALSE(ArchRunsOn("sm_80", 9, 0));
  EXPECT_TRUE(ArchRunsOn("sm_100f", 10, 3));
  EXPECT_TRUE(ArchRunsOn("sm_120a", 12, 0));
  EXPECT_FALSE(ArchRunsOn("compute_90", 9, 0));
  EXPECT_FALSE(ArchRunsOn("sm_", 9, 0));
}

}  // namespace
}  // namespace hackc::client

// SPDX-License-Identifier: MIT
#include "server/convert.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/server/fake_compiler.h"

namespace hackc::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::HasSubstr;

program::DimExpr Constant(int64_t value) { return {.value = value}; }

program::DimExpr CeilDiv() {
  return {.op = program::DimExpr::Op::kCeilDiv,
          .args = {{.op = program::DimExpr::Op::kSymbol, .symbol = "seq"}, Constant(128)}};
}

// Every field has a value that is not its default.
program::Kernel FullKernel() {
  program::Kernel kernel;
  kernel.name = "name";
  kernel.computes = "computes";
  kernel.key = "key";
  kernel.digest = "digest";
  kernel.entry = "entry";
  kernel.arch = "sm_90a";
  kernel.params.push_back({.kind = program::Param::Kind::kTensorMap,
                           .name = "a",
                           .offset = 64,
                           .size = 128,
                           .alignment = 16,
                           .written = true,
                           .symbol = "seq",
                           .tensor_map = {.buffer_argument = 1,
                                          .dtype = program::DType::kBFloat16,
                                          .dims = {CeilDiv(), Constant(64)},
                                          .strides = {Constant(4096)},
                                          .box = {64, 128},
                                          .swizzle_bytes = 128}});
  kernel.grid = {CeilDiv(), Constant(2), Constant(1)};
  kernel.block = {128, 2, 1};
  kernel.cluster = {2, 1, 1};
  kernel.static_shared_bytes = 1;
  kernel.dynamic_shared_bytes = 2;
  kernel.registers = 3;
  kernel.spill_bytes = 4;
  kernel.cubin_bytes = 5;
  kernel.valid.push_back({"seq", 1, 2048});
  kernel.bytes_moved = CeilDiv();
  kernel.operations = Constant(9);
  return kernel;
}

program::Program FullProgram() {
  program::Program program;
  program.format_version = "1";
  program.model = "model";
  program.arch = "sm_90a";
  program.dtype = program::DType::kFloat16;
  program.symbols.push_back({"seq", 1, 2048});
  program.buffers.push_back({.id = 1,
                             .name = "weight",
                             .kind = program::Buffer::Kind::kState,
                             .dtype = program::DType::kFloat64,
                             .shape = {Constant(8), CeilDiv()},
                             .weight_name = "layers.{layer}.w",
                             .repeat_count = 28,
                             .first_layer = 1,
                             .layer_step = 2,
                             .offset = Constant(256),
                             .data = "data"});
  program.kernels.push_back(FullKernel());
  program::Step launch{.launch = {.kernel = 1, .args = {{.buffer = 1, .offset = Constant(512)}}}};
  program.prepare.push_back({.repeat_count = 28, .steps = {launch}});
  program.entry_points.push_back({.name = "prefill",
                                  .inputs = {1},
                                  .outputs = {2},
                                  .steps = {launch, {.repeat_count = 2, .steps = {launch}}},
                                  .workspace_bytes = CeilDiv(),
                                  .symbols = {{"seq", 1, 16}}});
  return program;
}

// Records the full names of the fields that are set somewhere in `message`.
void CollectSet(const Message& message, std::set<std::string>& set) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    set.insert(field->full_name());
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        CollectSet(message.GetReflection()->GetRepeatedMessage(message, field, i), set);
      }
    } else {
      CollectSet(message.GetReflection()->GetMessage(message, field), set);
    }
  }
}

// Records the full names of all fields that `type` can have.
void CollectAll(const google::protobuf::Descriptor* type, std::set<std::string>& all) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (!all.insert(field->full_name()).second) continue;
    if (field->message_type() != nullptr) CollectAll(field->message_type(), all);
  }
}

TEST(Convert, EveryFieldOfAProgramIsCopied) {
  std::set<std::string> set, all;
  CollectSet(ToProto(FullProgram()), set);
  CollectAll(v1::Program::descriptor(), all);
  EXPECT_EQ(set, all);
}

TEST(Convert, ProgramValuesArriveInTheirFields) {
  const v1::Program program = ToProto(FullProgram());
  EXPECT_EQ(program.dtype(), v1::DTYPE_FLOAT16);
  const v1::Buffer& buffer = program.buffers(0);
  EXPECT_EQ(buffer.kind(), v1::Buffer::STATE);
  EXPECT_EQ(buffer.dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(buffer.repeat_count(), 28u);
  EXPECT_EQ(buffer.first_layer(), 1u);
  EXPECT_EQ(buffer.layer_step(), 2u);
  EXPECT_EQ(buffer.offset().value(), 256);
  const v1::Step& repeat = program.entry_points(0).steps(1);
  ASSERT_TRUE(repeat.has_repeat());
  EXPECT_EQ(repeat.repeat().count(), 2u);
  EXPECT_EQ(repeat.repeat().steps(0).launch().args(0).offset().value(), 512);
  EXPECT_EQ(program.entry_points(0).workspace_bytes().op(), v1::DimExpr::CEIL_DIV);
  EXPECT_EQ(program.entry_points(0).symbols(0).max(), 16);
}

TEST(Convert, ZeroFormulasStayAbsent) {
  program::Program program;
  program.buffers.emplace_back();
  program.kernels.emplace_back();
  const v1::Program message = ToProto(program);
  EXPECT_FALSE(message.buffers(0).has_offset());
  EXPECT_FALSE(message.kernels(0).has_operations());
  EXPECT_EQ(message.kernels(0).grid_size(), 3);
}

TEST(Convert, KernelSourceRoundTrips) {
  KernelSource source;
  source.kernel = FullKernel();
  source.cuda = std::string("text \0 \xff", 8);
  source.key_fields = {{"b", "1"}, {"a", "2"}};
  source.ir = {{"loop", "l"}, {"tile", "t"}};
  source.times = {{"fuse", 1.5}};
  const v1::worker::KernelSource message = ToProto(source);
  const absl::StatusOr<KernelSource> back = SourceFromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(ToProto(*back), message));
  EXPECT_EQ(back->key_fields, source.key_fields);
}

TEST(Convert, RefusesUnknownEnumsAndWrongCounts) {
  v1::Kernel kernel = ToProto(FullKernel());
  kernel.mutable_params(0)->set_kind(static_cast<v1::Param::Kind>(77));
  EXPECT_THAT(std::string(KernelFromProto(kernel).status().message()), HasSubstr("kind: 77"));
  kernel = ToProto(FullKernel());
  kernel.mutable_block()->RemoveLast();
  EXPECT_THAT(std::string(KernelFromProto(kernel).status().message()),
              HasSubstr("block: expected 3, got 2"));
}

TEST(Convert, RequestBecomesACallWithoutItsName) {
  v1::CompileRequest request = FakeRequest(R"({"a": 3584, "b": [1e-06, null, "x"]})");
  request.mutable_model()->set_dtype(v1::DTYPE_FLOAT16);
  request.mutable_model()->mutable_seq()->set_max(2048);
  request.mutable_model()->set_layers(3);
  const auto call = PlanCallFrom(request.model(), request.target(), "sm_80");
  ASSERT_TRUE(call.ok()) << call.status();
  const absl::StatusOr<CompileRequest> plain = RequestFromProto(*call);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->name, "");
  EXPECT_EQ(plain->arch, "sm_80");
  EXPECT_EQ(plain->dtype, program::DType::kFloat16);
  EXPECT_EQ(plain->seq.max, 2048);
  EXPECT_EQ(plain->layers, 3);
  EXPECT_THAT(plain->config_json, HasSubstr("\"a\":3584"));
  EXPECT_THAT(plain->config_json, HasSubstr("[1e-06,null,\"x\"]"));
}

TEST(Convert, NumbersThatJsonCannotSayBecomeStrings) {
  v1::ModelDescription model;
  (*model.mutable_config()->mutable_fields())["rope_theta"].set_number_value(std::nan(""));
  const absl::StatusOr<v1::worker::PlanCall> call = PlanCallFrom(model, {}, "sm_90a");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->config_json(), R"({"rope_theta":"NaN"})");
}

TEST(Convert, RequestErrorsNameTheField) {
  const auto message = [](const v1::CompileRequest& request) {
    return std::string(PlanCallFrom(request.model(), request.target(), "sm_80").status().message());
  };
  EXPECT_THAT(message(v1::CompileRequest()), HasSubstr("model.config: expected"));
  v1::CompileRequest bad_dtype = FakeRequest("{}");
  bad_dtype.mutable_model()->set_dtype(static_cast<v1::DType>(99));
  EXPECT_THAT(message(bad_dtype), HasSubstr("model.dtype: 99"));
  v1::CompileRequest not_json = FakeRequest("{}");
  (*not_json.mutable_model()->mutable_config()->mutable_fields())["x"].set_number_value(
      std::numeric_limits<double>::quiet_NaN());
  // JSON has no such number; as a text it is refused wherever a number is read.
  EXPECT_THAT(PlanCallFrom(not_json.model(), not_json.target(), "sm_80")->config_json(),
              HasSubstr("\"NaN\""));
}

}  // namespace
}  // namespace hackc::server

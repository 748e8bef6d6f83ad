// SPDX-License-Identifier: MIT
#include "server/convert.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::server {
namespace {

using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;

// The enums are declared in the same order on both sides.
static_assert(static_cast<int>(program::DType::kFloat64) == v1::DTYPE_FLOAT64);
static_assert(static_cast<int>(program::DimExpr::Op::kMax) == v1::DimExpr::MAX);
static_assert(static_cast<int>(program::Buffer::Kind::kState) == v1::Buffer::STATE);
static_assert(static_cast<int>(program::Param::Kind::kTensorMap) == v1::Param::TENSOR_MAP);

void Write(const program::DimExpr& expr, v1::DimExpr* out) {
  out->set_op(static_cast<v1::DimExpr::Op>(expr.op));
  out->set_value(expr.value);
  out->set_symbol(expr.symbol);
  for (const program::DimExpr& arg : expr.args) Write(arg, out->add_args());
}

// Calls `field()` (a mutable accessor) only when there is something to say.
template <typename Field>
void WriteUnlessZero(const program::DimExpr& expr, Field field) {
  if (expr != program::DimExpr()) Write(expr, field());
}

template <typename Exprs>
void WriteAll(const Exprs& exprs, RepeatedPtrField<v1::DimExpr>* out) {
  for (const program::DimExpr& expr : exprs) Write(expr, out->Add());
}

void Write(const program::Symbol& symbol, v1::Symbol* out) {
  out->set_name(symbol.name);
  out->set_min(symbol.min);
  out->set_max(symbol.max);
}

void Write(const program::Buffer& buffer, v1::Buffer* out) {
  out->set_id(buffer.id);
  out->set_name(buffer.name);
  out->set_kind(static_cast<v1::Buffer::Kind>(buffer.kind));
  out->set_dtype(static_cast<v1::DType>(buffer.dtype));
  WriteAll(buffer.shape, out->mutable_shape());
  out->set_weight_name(buffer.weight_name);
  out->set_repeat_count(buffer.repeat_count);
  out->set_first_layer(buffer.first_layer);
  out->set_layer_step(buffer.layer_step);
  WriteUnlessZero(buffer.offset, [&] { return out->mutable_offset(); });
  out->set_data(buffer.data);
}

void Write(const program::TensorMapRecipe& recipe, v1::TensorMapRecipe* out) {
  out->set_buffer_argument(recipe.buffer_argument);
  out->set_dtype(static_cast<v1::DType>(recipe.dtype));
  WriteAll(recipe.dims, out->mutable_dims());
  WriteAll(recipe.strides, out->mutable_strides());
  out->mutable_box()->Assign(recipe.box.begin(), recipe.box.end());
  out->set_swizzle_bytes(recipe.swizzle_bytes);
}

void Write(const program::Param& param, v1::Param* out) {
  out->set_kind(static_cast<v1::Param::Kind>(param.kind));
  out->set_name(param.name);
  out->set_offset(param.offset);
  out->set_size(param.size);
  out->set_alignment(param.alignment);
  out->set_written(param.written);
  out->set_symbol(param.symbol);
  if (param.kind == program::Param::Kind::kTensorMap) {
    Write(param.tensor_map, out->mutable_tensor_map());
  }
}

void Write(const program::Kernel& kernel, v1::Kernel* out) {
  out->set_name(kernel.name);
  out->set_computes(kernel.computes);
  out->set_key(kernel.key);
  out->set_digest(kernel.digest);
  out->set_entry(kernel.entry);
  out->set_arch(kernel.arch);
  for (const program::Param& param : kernel.params) Write(param, out->add_params());
  WriteAll(kernel.grid, out->mutable_grid());
  out->mutable_block()->Assign(kernel.block.begin(), kernel.block.end());
  out->mutable_cluster()->Assign(kernel.cluster.begin(), kernel.cluster.end());
  out->set_static_shared_bytes(kernel.static_shared_bytes);
  out->set_dynamic_shared_bytes(kernel.dynamic_shared_bytes);
  out->set_registers(kernel.registers);
  out->set_spill_bytes(kernel.spill_bytes);
  out->set_cubin_bytes(kernel.cubin_bytes);
  for (const program::Symbol& symbol : kernel.valid) Write(symbol, out->add_valid());
  WriteUnlessZero(kernel.bytes_moved, [&] { return out->mutable_bytes_moved(); });
  WriteUnlessZero(kernel.operations, [&] { return out->mutable_operations(); });
}

void Write(const program::Step& step, v1::Step* out) {
  if (step.repeat_count > 0) {
    out->mutable_repeat()->set_count(step.repeat_count);
    for (const program::Step& inner : step.steps) Write(inner, out->mutable_repeat()->add_steps());
    return;
  }
  v1::Launch* launch = out->mutable_launch();
  launch->set_kernel(step.launch.kernel);
  for (const program::BufferRef& arg : step.launch.args) {
    v1::BufferRef* ref = launch->add_args();
    ref->set_buffer(arg.buffer);
    WriteUnlessZero(arg.offset, [&] { return ref->mutable_offset(); });
  }
}

void WriteTimes(const std::vector<StageTime>& times, RepeatedPtrField<v1::StageTime>* out) {
  for (const StageTime& time : times) {
    v1::StageTime* message = out->Add();
    message->set_stage(time.stage);
    message->set_milliseconds(time.milliseconds);
  }
}

absl::Status BadEnum(const char* field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", value, " is not a value of this enum"));
}

absl::StatusOr<program::DimExpr> Read(const v1::DimExpr& message) {
  if (!v1::DimExpr::Op_IsValid(message.op())) return BadEnum("op", message.op());
  program::DimExpr expr;
  expr.op = static_cast<program::DimExpr::Op>(message.op());
  expr.value = message.value();
  expr.symbol = message.symbol();
  for (const v1::DimExpr& arg : message.args()) {
    HACKC_ASSIGN_OR_RETURN(expr.args.emplace_back(), Read(arg));
  }
  return expr;
}

absl::StatusOr<std::vector<program::DimExpr>> Read(const RepeatedPtrField<v1::DimExpr>& messages) {
  std::vector<program::DimExpr> exprs;
  for (const v1::DimExpr& message : messages) {
    HACKC_ASSIGN_OR_RETURN(exprs.emplace_back(), Read(message));
  }
  return exprs;
}

absl::StatusOr<program::Param> Read(const v1::Param& message) {
  if (!v1::Param::Kind_IsValid(message.kind())) return BadEnum("kind", message.kind());
  program::Param param;
  param.kind = static_cast<program::Param::Kind>(message.kind());
  param.name = message.name();
  param.offset = message.offset();
  param.size = message.size();
  param.alignment = message.alignment();
  param.written = message.written();
  param.symbol = message.symbol();
  const v1::TensorMapRecipe& recipe = message.tensor_map();
  if (!v1::DType_IsValid(recipe.dtype())) return BadEnum("tensor_map.dtype", recipe.dtype());
  param.tensor_map.buffer_argument = recipe.buffer_argument();
  param.tensor_map.dtype = static_cast<program::DType>(recipe.dtype());
  HACKC_ASSIGN_OR_RETURN(param.tensor_map.dims, Read(recipe.dims()));
  HACKC_ASSIGN_OR_RETURN(param.tensor_map.strides, Read(recipe.strides()));
  param.tensor_map.box.assign(recipe.box().begin(), recipe.box().end());
  param.tensor_map.swizzle_bytes = recipe.swizzle_bytes();
  return param;
}

absl::Status ReadThree(const char* field, const RepeatedField<uint32_t>& values,
                       std::array<uint32_t, 3>* out) {
  if (values.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": expected 3, got ", values.size()));
  }
  std::copy(values.begin(), values.end(), out->begin());
  return absl::OkStatus();
}

// 0/0 is what is not given.
void ReadGiven(const v1::Range& range, frontend::ShapeRange* out) {
  if (range.min() != 0 || range.max() != 0) *out = {range.min(), range.max()};
}

}  // namespace

v1::Program ToProto(const program::Program& program) {
  v1::Program out;
  out.set_format_version(program.format_version);
  out.set_model(program.model);
  out.set_arch(program.arch);
  out.set_dtype(static_cast<v1::DType>(program.dtype));
  for (const program::Symbol& symbol : program.symbols) Write(symbol, out.add_symbols());
  for (const program::Buffer& buffer : program.buffers) Write(buffer, out.add_buffers());
  for (const program::Kernel& kernel : program.kernels) Write(kernel, out.add_kernels());
  for (const program::Step& step : program.prepare) Write(step, out.add_prepare());
  for (const program::EntryPoint& entry : program.entry_points) {
    v1::EntryPoint* message = out.add_entry_points();
    message->set_name(entry.name);
    message->mutable_inputs()->Assign(entry.inputs.begin(), entry.inputs.end());
    message->mutable_outputs()->Assign(entry.outputs.begin(), entry.outputs.end());
    for (const program::Step& step : entry.steps) Write(step, message->add_steps());
    WriteUnlessZero(entry.workspace_bytes, [&] { return message->mutable_workspace_bytes(); });
    for (const program::Symbol& symbol : entry.symbols) Write(symbol, message->add_symbols());
  }
  return out;
}

v1::Kernel ToProto(const program::Kernel& kernel) {
  v1::Kernel out;
  Write(kernel, &out);
  return out;
}

v1::worker::KernelSource ToProto(const KernelSource& source) {
  v1::worker::KernelSource out;
  Write(source.kernel, out.mutable_kernel());
  out.set_cuda(source.cuda);
  for (const auto& [tag, value] : source.key_fields) {
    v1::worker::KeyField* field = out.add_key_fields();
    field->set_tag(tag);
    field->set_value(value);
  }
  out.mutable_ir()->insert(source.ir.begin(), source.ir.end());
  WriteTimes(source.times, out.mutable_times());
  return out;
}

v1::worker::PlanResult ToProto(const Plan& plan) {
  v1::worker::PlanResult out;
  *out.mutable_program() = ToProto(plan.program);
  for (const KernelSource& source : plan.kernels) *out.add_kernels() = ToProto(source);
  out.set_graph_text(plan.graph_text);
  out.set_tensor_text(plan.tensor_text);
  WriteTimes(plan.times, out.mutable_times());
  return out;
}

v1::worker::CompiledKernel ToProto(const CompiledKernel& kernel) {
  v1::worker::CompiledKernel out;
  out.set_cubin(kernel.bytes);
  out.set_registers(kernel.registers);
  out.set_spill_bytes(kernel.spill_bytes);
  out.set_static_shared_bytes(kernel.static_shared_bytes);
  out.set_log(kernel.warnings);
  out.set_nvrtc_ms(kernel.milliseconds);
  return out;
}

v1::worker::Reference ToProto(const Reference& reference) {
  v1::worker::Reference out;
  *out.mutable_source() = ToProto(reference.source);
  for (const program::BufferUse& use : reference.buffers) {
    v1::worker::BufferUse* message = out.add_buffers();
    message->set_dtype(static_cast<v1::DType>(use.dtype));
    WriteAll(use.shape, message->mutable_shape());
    message->set_read(use.read);
    message->set_written(use.written);
    WriteUnlessZero(use.below, [&] { return message->mutable_below(); });
  }
  out.set_longest_reduction(reference.rounding.longest_reduction);
  out.set_coarsest(static_cast<v1::DType>(reference.rounding.coarsest));
  return out;
}

absl::StatusOr<program::Kernel> KernelFromProto(const v1::Kernel& message) {
  program::Kernel kernel;
  kernel.name = message.name();
  kernel.computes = message.computes();
  kernel.key = message.key();
  kernel.digest = message.digest();
  kernel.entry = message.entry();
  kernel.arch = message.arch();
  for (const v1::Param& param : message.params()) {
    HACKC_ASSIGN_OR_RETURN(kernel.params.emplace_back(), Read(param));
  }
  HACKC_ASSIGN_OR_RETURN(std::vector<program::DimExpr> grid, Read(message.grid()));
  if (grid.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("grid: expected 3, got ", grid.size()));
  }
  std::move(grid.begin(), grid.end(), kernel.grid.begin());
  HACKC_RETURN_IF_ERROR(ReadThree("block", message.block(), &kernel.block));
  HACKC_RETURN_IF_ERROR(ReadThree("cluster", message.cluster(), &kernel.cluster));
  kernel.static_shared_bytes = message.static_shared_bytes();
  kernel.dynamic_shared_bytes = message.dynamic_shared_bytes();
  kernel.registers = message.registers();
  kernel.spill_bytes = message.spill_bytes();
  kernel.cubin_bytes = message.cubin_bytes();
  for (const v1::Symbol& symbol : message.valid()) {
    kernel.valid.push_back({symbol.name(), symbol.min(), symbol.max()});
  }
  HACKC_ASSIGN_OR_RETURN(kernel.bytes_moved, Read(message.bytes_moved()));
  HACKC_ASSIGN_OR_RETURN(kernel.operations, Read(message.operations()));
  return kernel;
}

absl::StatusOr<KernelSource> SourceFromProto(const v1::worker::KernelSource& message) {
  KernelSource source;
  HACKC_ASSIGN_OR_RETURN(source.kernel, KernelFromProto(message.kernel()));
  source.cuda = message.cuda();
  source.key_fields = KeyFieldsFromProto(message.key_fields());
  source.ir.insert(message.ir().begin(), message.ir().end());
  for (const v1::StageTime& time : message.times()) {
    source.times.push_back({time.stage(), time.milliseconds()});
  }
  return source;
}

absl::StatusOr<CompileRequest> RequestFromProto(const v1::worker::PlanCall& call) {
  if (!v1::DType_IsValid(call.dtype())) return BadEnum("model.dtype", call.dtype());
  CompileRequest request;
  request.name = call.name();
  request.config_json = call.config_json();
  request.dtype = static_cast<program::DType>(call.dtype());
  ReadGiven(call.batch(), &request.batch);
  ReadGiven(call.seq(), &request.seq);
  ReadGiven(call.past(), &request.past);
  request.page_size = call.page_size();
  request.last_logits = call.last_logits();
  request.layers = call.layers();
  request.arch = call.arch();
  return request;
}

absl::StatusOr<v1::worker::PlanCall> PlanCallFrom(const v1::ModelDescription& model,
                                                  const v1::Target& target,
                                                  const std::string& default_arch) {
  if (!model.has_config()) {
    return absl::InvalidArgumentError(
        "model.config: expected the Hugging Face config.json as an object, got nothing");
  }
  if (!v1::DType_IsValid(model.dtype())) return BadEnum("model.dtype", model.dtype());
  if (!v1::ModelDescription::Logits_IsValid(model.logits()))
    return BadEnum("model.logits", model.logits());
  v1::worker::PlanCall call;
  // NaN and infinity come out as strings, which the front end refuses where a number belongs.
  if (auto status =
          google::protobuf::util::MessageToJsonString(model.config(), call.mutable_config_json());
      !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.config: cannot be written as JSON: ", status.message().ToString()));
  }
  call.set_dtype(model.dtype());
  *call.mutable_batch() = model.batch();
  *call.mutable_seq() = model.seq();
  *call.mutable_past() = model.past();
  call.set_page_size(model.page_size());
  call.set_last_logits(model.logits() == v1::ModelDescription::LOGITS_LAST);
  call.set_layers(model.layers());
  call.set_arch(target.arch().empty() ? default_arch : target.arch());
  return call;
}

KeyFields KeyFieldsFromProto(const RepeatedPtrField<v1::worker::KeyField>& fields) {
  KeyFields out;
  for (const v1::worker::KeyField& field : fields) out.emplace_back(field.tag(), field.value());
  return out;
}

std::string SerializeDeterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace hackc::server

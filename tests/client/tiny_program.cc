// SPDX-License-Identifier: MIT
#include "tests/client/tiny_program.h"

#include <string>

#include "client/runtime/digest.h"
#include "tests/client/formula_builder.h"

namespace hackc::client {
namespace {

using E = v1::DimExpr;

v1::Buffer* AddBuffer(v1::Program* program, const std::string& name, v1::Buffer::Kind kind,
                      v1::DType dtype) {
  v1::Buffer* buffer = program->add_buffers();
  buffer->set_id(program->buffers_size() - 1);
  buffer->set_name(name);
  buffer->set_kind(kind);
  buffer->set_dtype(dtype);
  return buffer;
}

void AddParam(v1::Kernel* kernel, const std::string& name, bool written) {
  v1::Param* param = kernel->add_params();
  param->set_name(name);
  param->set_kind(v1::Param::BUFFER);
  param->set_offset(8 * (kernel->params_size() - 1));
  param->set_size(8);
  param->set_alignment(16);
  param->set_written(written);
}

void AddSeq(v1::Kernel* kernel) {
  v1::Param* param = kernel->add_params();
  param->set_name("seq");
  param->set_kind(v1::Param::SYMBOL_I32);
  param->set_offset(8 * (kernel->params_size() - 1));
  param->set_size(4);
  param->set_symbol("seq");
}

v1::Kernel* AddKernel(v1::Program* program, const std::string& name, const E& blocks) {
  v1::Kernel* kernel = program->add_kernels();
  kernel->set_name(name);
  kernel->set_computes("what " + name + " computes");
  kernel->set_key(Sha256Digest("key of " + name));
  kernel->set_entry("hackc_" + name);
  kernel->set_digest(Sha256Digest(kernel->entry()));
  kernel->set_arch("sm_90a");
  *kernel->add_grid() = blocks;
  *kernel->add_grid() = Const(1);
  *kernel->add_grid() = Const(1);
  for (int extent : {128, 1, 1}) kernel->add_block(extent);
  for (int i = 0; i < 3; ++i) kernel->add_cluster(1);
  kernel->set_registers(40);
  kernel->set_static_shared_bytes(512);
  kernel->set_cubin_bytes(kernel->entry().size());
  return kernel;
}

void SetValid(v1::Kernel* kernel) {
  v1::Symbol* valid = kernel->add_valid();
  valid->set_name("seq");
  valid->set_min(1);
  valid->set_max(kTinyMaxSeq);
}

void AddLaunch(google::protobuf::RepeatedPtrField<v1::Step>* steps, TinyKernel kernel,
               const std::vector<int>& buffers) {
  v1::Launch* launch = steps->Add()->mutable_launch();
  launch->set_kernel(kernel);
  for (int buffer : buffers) launch->add_args()->set_buffer(buffer);
}

}  // namespace

v1::Program TinyProgram() {
  v1::Program program;
  program.set_format_version("1");
  program.set_model("tiny");
  program.set_arch("sm_90a");
  program.set_dtype(v1::DTYPE_FLOAT32);
  v1::Symbol* seq = program.add_symbols();
  seq->set_name("seq");
  seq->set_min(1);
  seq->set_max(kTinyMaxSeq);

  E hidden_bytes = Op(E::MUL, Sym("seq"), Const(4 * kTinyChannels));
  *AddBuffer(&program, "input_ids", v1::Buffer::INPUT, v1::DTYPE_INT64)->add_shape() = Sym("seq");
  v1::Buffer* logits = AddBuffer(&program, "logits", v1::Buffer::OUTPUT, v1::DTYPE_FLOAT32);
  v1::Buffer* weight = AddBuffer(&program, "w", v1::Buffer::WEIGHT, v1::DTYPE_FLOAT32);
  weight->set_weight_name("model.layers.{layer}.w");
  weight->set_first_layer(0);
  weight->set_layer_step(1);
  weight->set_repeat_count(kTinyLayers);
  v1::Buffer* prepared = AddBuffer(&program, "w2", v1::Buffer::PREPARED, v1::DTYPE_FLOAT32);
  prepared->set_repeat_count(kTinyLayers);
  v1::Buffer* scale = AddBuffer(&program, "scale", v1::Buffer::CONSTANT, v1::DTYPE_FLOAT32);
  float values[kTinyChannels] = {0.5f, 1.5f, 2.5f, 3.5f};
  scale->set_data(values, sizeof(values));
  v1::Buffer* hidden = AddBuffer(&program, "hidden", v1::Buffer::WORKSPACE, v1::DTYPE_FLOAT32);
  v1::Buffer* next = AddBuffer(&program, "next", v1::Buffer::WORKSPACE, v1::DTYPE_FLOAT32);
  *next->mutable_offset() = Op(E::MUL, Op(E::CEIL_DIV, hidden_bytes, Const(256)), Const(256));
  v1::Buffer* final = AddBuffer(&program, "final", v1::Buffer::WEIGHT, v1::DTYPE_FLOAT32);
  final->set_weight_name("model.final");
  for (v1::Buffer* buffer : {logits, hidden, next}) *buffer->add_shape() = Sym("seq");
  for (v1::Buffer* buffer : {logits, hidden, next, weight, prepared, scale, final}) {
    *buffer->add_shape() = Const(kTinyChannels);
  }

  E blocks = Op(E::CEIL_DIV, Sym("seq"), Const(16));
  v1::Kernel* twice = AddKernel(&program, "double", Const(1));
  AddParam(twice, "in", false);
  AddParam(twice, "out", true);
  v1::Kernel* embed = AddKernel(&program, "embed", blocks);
  AddParam(embed, "ids", false);
  AddParam(embed, "hidden", true);
  AddSeq(embed);
  v1::Kernel* layer = AddKernel(&program, "layer", blocks);
  AddParam(layer, "hidden", false);
  AddParam(layer, "weight", false);
  AddParam(layer, "next", true);
  AddSeq(layer);
  layer->set_dynamic_shared_bytes(65536);
  v1::Kernel* copy = AddKernel(&program, "copy", blocks);
  AddParam(copy, "from", false);
  AddParam(copy, "to", true);
  AddSeq(copy);
  v1::Kernel* head = AddKernel(&program, "head", blocks);
  AddParam(head, "hidden", false);
  AddParam(head, "final", false);
  AddParam(head, "scale", false);
  AddParam(head, "logits", true);
  AddSeq(head);
  for (v1::Kernel* kernel : {embed, layer, copy, head}) SetValid(kernel);

  v1::Step::Repeat* prepare = program.add_prepare()->mutable_repeat();
  prepare->set_count(kTinyLayers);
  AddLaunch(prepare->mutable_steps(), kDouble, {kWeight, kPrepared});

  v1::EntryPoint* entry = program.add_entry_points();
  entry->set_name("prefill");
  entry->add_inputs(kIds);
  entry->add_outputs(kLogits);
  AddLaunch(entry->mutable_steps(), kEmbed, {kIds, kHidden});
  v1::Step::Repeat* layers = entry->add_steps()->mutable_repeat();
  layers->set_count(kTinyLayers);
  AddLaunch(layers->mutable_steps(), kLayer, {kHidden, kPrepared, kNext});
  AddLaunch(layers->mutable_steps(), kCopy, {kNext, kHidden});
  AddLaunch(entry->mutable_steps(), kHead, {kHidden, kFinal, kScale, kLogits});
  *entry->mutable_workspace_bytes() =
      Op(E::MUL, Const(2), Op(E::MUL, Op(E::CEIL_DIV, hidden_bytes, Const(256)), Const(256)));
  return program;
}

void InstallTinyKernels(FakeGpu* gpu) {
  gpu->kernels["double"] = [](const FakeGpu::Launch& launch) {
    for (int c = 0; c < kTinyChannels; ++c) {
      launch.Pointer<float>(1)[c] = 2 * launch.Pointer<float>(0)[c];
    }
  };
  gpu->kernels["embed"] = [](const FakeGpu::Launch& launch) {
    for (int i = 0; i < launch.Int(2) * kTinyChannels; ++i) {
      launch.Pointer<float>(1)[i] =
          static_cast<float>(launch.Pointer<int64_t>(0)[i / kTinyChannels]);
    }
  };
  gpu->kernels["layer"] = [](const FakeGpu::Launch& launch) {
    for (int i = 0; i < launch.Int(3) * kTinyChannels; ++i) {
      launch.Pointer<float>(2)[i] =
          launch.Pointer<float>(0)[i] + launch.Pointer<float>(1)[i % kTinyChannels];
    }
  };
  gpu->kernels["copy"] = [](const FakeGpu::Launch& launch) {
    std::memcpy(launch.Pointer<float>(1), launch.Pointer<float>(0),
                launch.Int(2) * kTinyChannels * sizeof(float));
  };
  gpu->kernels["head"] = [](const FakeGpu::Launch& launch) {
    for (int i = 0; i < launch.Int(4) * kTinyChannels; ++i) {
      int c = i % kTinyChannels;
      launch.Pointer<float>(3)[i] =
          launch.Pointer<float>(0)[i] * launch.Pointer<float>(1)[c] + launch.Pointer<float>(2)[c];
    }
  };
}

}  // namespace hackc::client

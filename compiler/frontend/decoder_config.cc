// SPDX-License-Identifier: MIT
#include "compiler/frontend/decoder_config.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "compiler/frontend/config_reader.h"
#include "compiler/frontend/harmless_keys.h"
#include "compiler/frontend/layer_kinds.h"
#include "compiler/support/cat.h"
#include "compiler/support/lookup.h"
#include "compiler/support/status_macros.h"

namespace hackc::frontend {
namespace {

// Larger than any published model by a factor of four at least, and small enough that no product of
// two of them leaves 64 bits.
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxFeatures = int64_t{1} << 20;
constexpr int64_t kMaxHeads = int64_t{1} << 14;
// Attention was compiled up to here; its tiles for 1024 do not fit in shared memory.
constexpr int64_t kMaxHeadDim = 512;
constexpr int64_t kMaxLayers = int64_t{1} << 12;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

std::string SupportedText() {
  const auto show = [](std::string* out, const ArchitectureFacts& facts) {
    *out += Cat(facts.model_type, " (", facts.architecture, ")");
  };
  return absl::StrJoin(AllArchitectures(), ", ", show);
}

absl::StatusOr<const ArchitectureFacts*> ReadArchitecture(ConfigReader& reader) {
  HACKC_ASSIGN_OR_RETURN(const auto type, reader.String("model_type"));
  const ArchitectureFacts* facts = nullptr;
  if (type) {
    facts = FindBy(AllArchitectures(), &ArchitectureFacts::model_type, *type);
    if (facts == nullptr) {
      return reader.Error("model_type", ShortText(*type), " is not supported; expected one of ",
                          SupportedText());
    }
  }
  const nlohmann::json* classes = reader.Find("architectures");
  if (classes == nullptr) {
    if (facts != nullptr) return facts;
    return reader.Error("model_type", "missing; expected one of ", SupportedText());
  }
  if (!classes->is_array() || classes->size() != 1 || !classes->front().is_string()) {
    return reader.Error("architectures", "expected a list of one string, got ",
                        ShortText(*classes));
  }
  const auto* of_class = FindBy(AllArchitectures(), &ArchitectureFacts::architecture,
                                classes->front().get<std::string>());
  if (of_class == nullptr || (facts != nullptr && of_class != facts)) {
    return reader.Error("architectures", ShortText(classes->front()),
                        facts == nullptr
                            ? Cat(" is not supported; expected one of ", SupportedText())
                            : Cat(" is not supported for model_type \"", facts->model_type,
                                  "\"; expected ", facts->architecture));
  }
  return of_class;
}

absl::StatusOr<ir::DType> ReadDType(ConfigReader& reader, const FrontendOptions& options) {
  HACKC_ASSIGN_OR_RETURN(const auto key,
                         FindSpelling({{&reader, "dtype"}, {&reader, "torch_dtype"}}));
  if (options.dtype) return *options.dtype;
  if (!key) return ir::DType::kBF16;
  HACKC_ASSIGN_OR_RETURN(const auto name, key->reader->String(key->key));
  if (*name == "float32") return ir::DType::kF32;
  if (*name == "bfloat16") return ir::DType::kBF16;
  if (*name == "float16") return ir::DType::kF16;
  return reader.Error(key->key, ShortText(*name),
                      " is not supported; expected float32, "
                      "bfloat16 or float16, or a dtype in the request");
}

absl::StatusOr<ir::ActivationKind> ReadActivation(ConfigReader& reader) {
  using Kind = std::pair<std::string, ir::ActivationKind>;
  static const auto* kinds =
      new std::vector<Kind>{{"silu", ir::ActivationKind::kSilu},
                            {"swish", ir::ActivationKind::kSilu},
                            {"gelu", ir::ActivationKind::kGelu},
                            {"gelu_new", ir::ActivationKind::kGeluTanh},
                            {"gelu_pytorch_tanh", ir::ActivationKind::kGeluTanh},
                            {"relu", ir::ActivationKind::kRelu}};
  HACKC_ASSIGN_OR_RETURN(const auto name, reader.String("hidden_act"));
  if (!name) return ir::ActivationKind::kSilu;
  if (const auto* known = FindBy(*kinds, &Kind::first, *name)) return known->second;
  const auto show = [](std::string* out, const Kind& kind) { *out += kind.first; };
  return reader.Error("hidden_act", ShortText(*name), " is not supported; expected one of ",
                      absl::StrJoin(*kinds, ", ", show));
}

absl::StatusOr<bool> ReadBias(ConfigReader& reader, BiasRule rule) {
  switch (rule) {
    case BiasRule::kNever: return false;
    case BiasRule::kAlways: {
      HACKC_ASSIGN_OR_RETURN(const bool agrees, reader.Bool("attention_bias", true));
      if (agrees) return true;
      return reader.Error("attention_bias", "false contradicts the architecture, which has biases");
    }
    case BiasRule::kAttentionBiasKey: return reader.Bool("attention_bias", false);
    case BiasRule::kMlpBiasKey: return reader.Bool("mlp_bias", false);
  }
  return false;
}

absl::Status ReadHeads(ConfigReader& reader, DecoderConfig& decoder) {
  const ArchitectureFacts& facts = *decoder.facts;
  HACKC_ASSIGN_OR_RETURN(decoder.heads,
                         reader.RequiredInteger("num_attention_heads", 1, kMaxHeads));
  if (facts.default_key_value_heads_is_heads || reader.IsExplicitNull("num_key_value_heads")) {
    HACKC_ASSIGN_OR_RETURN(const auto heads, reader.Integer("num_key_value_heads", 1, kMaxHeads));
    decoder.key_value_heads = heads.value_or(decoder.heads);
  } else {
    HACKC_ASSIGN_OR_RETURN(decoder.key_value_heads,
                           reader.RequiredInteger("num_key_value_heads", 1, kMaxHeads));
  }
  if (decoder.heads % decoder.key_value_heads != 0) {
    return reader.Error("num_key_value_heads", decoder.heads,
                        " attention heads are not divisible by ", decoder.key_value_heads,
                        "; expected a divisor of num_attention_heads");
  }
  // An explicit head_dim wins over hidden_size / heads, whether or not they agree.
  HACKC_ASSIGN_OR_RETURN(const auto head_dim, reader.Integer("head_dim", 1, kMaxHeadDim));
  if (head_dim) {
    decoder.head_dim = *head_dim;
  } else if (facts.default_head_dim > 0) {
    decoder.head_dim = facts.default_head_dim;
  } else if (decoder.hidden_size % decoder.heads == 0) {
    decoder.head_dim = decoder.hidden_size / decoder.heads;
  } else {
    return reader.Error("num_attention_heads", "hidden_size ", decoder.hidden_size,
                        " is not divisible by ", decoder.heads,
                        "; expected a divisor, or an explicit head_dim");
  }
  const std::string source =
      head_dim || facts.default_head_dim > 0 ? "head_dim" : "num_attention_heads";
  if (decoder.head_dim > kMaxHeadDim) {
    return reader.Error(source, "the head dimension is ", decoder.head_dim, "; expected at most ",
                        kMaxHeadDim);
  }
  if (decoder.head_dim % 2 != 0) {
    return reader.Error(source, "the head dimension is ", decoder.head_dim,
                        "; expected an even number, for rope turns pairs");
  }
  if (decoder.heads * decoder.head_dim > kMaxFeatures) {
    return reader.Error(source, "num_attention_heads x head dimension is ",
                        decoder.heads * decoder.head_dim, "; expected at most ", kMaxFeatures);
  }
  return absl::OkStatus();
}

absl::Status RefuseQuantization(ConfigReader& reader) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    const nlohmann::json* value = reader.Find(key);
    if (value == nullptr) continue;
    const bool named = value->is_object() && value->contains("quant_method");
    return reader.Error(
        key, named ? ShortText((*value)["quant_method"]) : std::string("a quantised checkpoint"),
        " is not supported; expected float32, bfloat16 or float16 weights and no ", key);
  }
  return absl::OkStatus();
}

absl::Status RefuseUnreadKeys(ConfigReader& reader, const nlohmann::json& config,
                              const ArchitectureFacts& facts) {
  for (const std::string& key : reader.UnreadKeys()) {
    HACKC_ASSIGN_OR_RETURN(const bool harmless, IsHarmless(key, config.at(key), reader));
    if (harmless) continue;
    return reader.Error(key, "not a key that hackc knows for model_type \"", facts.model_type,
                        "\"; it may change the result, so it is refused. Remove it "
                        "if it does not apply");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecoderConfig> ReadDecoderConfig(const nlohmann::json& config,
                                                const FrontendOptions& options) {
  ConfigReader reader(config, "config");
  DecoderConfig decoder;
  HACKC_ASSIGN_OR_RETURN(decoder.facts, ReadArchitecture(reader));
  HACKC_RETURN_IF_ERROR(RefuseQuantization(reader));
  HACKC_ASSIGN_OR_RETURN(decoder.dtype, ReadDType(reader, options));
  HACKC_ASSIGN_OR_RETURN(decoder.vocab_size, reader.RequiredInteger("vocab_size", 1, kMaxVocab));
  HACKC_ASSIGN_OR_RETURN(decoder.hidden_size,
                         reader.RequiredInteger("hidden_size", 1, kMaxFeatures));
  HACKC_ASSIGN_OR_RETURN(decoder.intermediate_size,
                         reader.RequiredInteger("intermediate_size", 1, kMaxFeatures));
  HACKC_ASSIGN_OR_RETURN(const int64_t layers,
                         reader.RequiredInteger("num_hidden_layers", 1, kMaxLayers));
  HACKC_RETURN_IF_ERROR(ReadHeads(reader, decoder));
  HACKC_ASSIGN_OR_RETURN(const auto epsilon, reader.Number("rms_norm_eps", 0, 1));
  decoder.norm_epsilon = epsilon.value_or(1e-6);
  HACKC_ASSIGN_OR_RETURN(decoder.activation, ReadActivation(reader));
  HACKC_ASSIGN_OR_RETURN(decoder.qkv_bias, ReadBias(reader, decoder.facts->qkv_bias));
  HACKC_ASSIGN_OR_RETURN(decoder.output_bias, ReadBias(reader, decoder.facts->output_bias));
  HACKC_ASSIGN_OR_RETURN(decoder.mlp_bias, ReadBias(reader, decoder.facts->mlp_bias));
  HACKC_ASSIGN_OR_RETURN(decoder.tied_head, reader.Bool("tie_word_embeddings", false));
  HACKC_ASSIGN_OR_RETURN(const auto max_positions,
                         reader.Integer("max_position_embeddings", 1, kMaxPositions));
  HACKC_ASSIGN_OR_RETURN(
      decoder.rope,
      ReadRopeParameters(reader, decoder.head_dim,
                         max_positions.value_or(decoder.facts->default_max_positions), options));
  HACKC_ASSIGN_OR_RETURN(decoder.layers, ReadLayerKinds(reader, *decoder.facts, layers,
                                                        options.seq.max + options.past.max));
  HACKC_RETURN_IF_ERROR(RefuseUnreadKeys(reader, config, *decoder.facts));
  if (options.layers > layers) {
    return absl::InvalidArgumentError(Cat("layers: expected at most ", layers,
                                          " (config.num_hidden_layers), got ", options.layers));
  }
  if (options.layers > 0) decoder.layers.resize(options.layers);
  return decoder;
}

}  // namespace hackc::frontend

// SPDX-License-Identifier: MIT
// transformers computes inverse frequencies in float32, and checkpoints were trained with those
// values: the functions below do the same arithmetic in the same precision, step for step.
#include "compiler/frontend/rope_parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "absl/strings/str_join.h"
#include "compiler/support/lookup.h"
#include "compiler/support/status_macros.h"

namespace hackc::frontend {
namespace {

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

struct RopeContext {
  ConfigReader& reader;  // the object that holds the type's numbers
  double theta;
  int64_t head_dim;
  int64_t max_positions;
  const FrontendOptions& options;
  std::optional<Spelling> type;  // where the type stands, if anywhere
};

std::vector<float> PositionFrequencies(const RopeContext& context) {
  std::vector<float> result;
  for (int64_t i = 0; i < context.head_dim; i += 2) {
    result.push_back(std::pow(static_cast<float>(context.theta),
                              static_cast<float>(i) / static_cast<float>(context.head_dim)));
  }
  return result;
}

std::vector<float> PlainFrequencies(const RopeContext& context) {
  std::vector<float> result = PositionFrequencies(context);
  for (float& value : result) value = 1.0f / value;
  return result;
}

RopeParameters Make(const std::vector<float>& frequencies, double scale = 1) {
  return {std::vector<double>(frequencies.begin(), frequencies.end()), scale, 0, 0};
}

absl::StatusOr<RopeParameters> Default(RopeContext& context) {
  return Make(PlainFrequencies(context));
}

absl::StatusOr<RopeParameters> Linear(RopeContext& context) {
  HACKC_ASSIGN_OR_RETURN(const double factor,
                         context.reader.RequiredNumber("factor", 0, kMaxFactor));
  std::vector<float> frequencies = PlainFrequencies(context);
  for (float& value : frequencies) value /= static_cast<float>(factor);
  return Make(frequencies);
}

// The base grows with the length once it exceeds max_position_embeddings; up to there it is the
// plain rope. The length is that of the call, as it is in transformers: there, one call takes the
// whole prompt. So no call may pad a shorter sequence, and none may have to take a prompt in parts:
// with seq.max above past.max, a prompt that one call cannot take does not fit in the cache.
absl::StatusOr<RopeParameters> Dynamic(RopeContext& context) {
  auto& [reader, theta, head_dim, max_positions, options, type] = context;
  HACKC_ASSIGN_OR_RETURN(const double factor, reader.RequiredNumber("factor", 0, kMaxFactor));
  RopeParameters result = Make(PlainFrequencies(context));
  if (options.seq.max + options.past.max > max_positions) {
    if (head_dim < 4) {
      return reader.Error(type->key, "\"dynamic\" needs a head dimension of 4 at least");
    }
    if (options.batch.max > 1 || options.seq.max <= options.past.max) {
      return reader.Error(type->key, "\"dynamic\" follows the length of a call beyond ",
                          max_positions,
                          " positions, so a prompt is one call there, without padding; expected "
                          "batch.max of 1 and seq.max above past.max, or seq.max + past.max of at "
                          "most ",
                          max_positions, "; got batch.max ", options.batch.max, ", seq.max ",
                          options.seq.max, ", past.max ", options.past.max);
    }
    result.dynamic_factor = factor;
    result.dynamic_length = max_positions;
  }
  return result;
}

// Long waves are stretched by factor, short ones kept, those between interpolated.
absl::StatusOr<RopeParameters> Llama3(RopeContext& context) {
  ConfigReader& reader = context.reader;
  HACKC_ASSIGN_OR_RETURN(const double factor, reader.RequiredNumber("factor", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const double low, reader.RequiredNumber("low_freq_factor", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const double high,
                         reader.RequiredNumber("high_freq_factor", low, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(
      const int64_t original,
      reader.RequiredInteger("original_max_position_embeddings", 1, kMaxPositions));
  const float low_wavelength = static_cast<double>(original) / low;
  const float high_wavelength = static_cast<double>(original) / high;
  std::vector<float> frequencies = PlainFrequencies(context);
  for (float& value : frequencies) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / value;
    if (wavelength > low_wavelength) {
      value /= static_cast<float>(factor);
    } else if (wavelength >= high_wavelength) {
      const float smooth = (static_cast<float>(original) / wavelength - static_cast<float>(low)) /
                           static_cast<float>(high - low);
      value = (1 - smooth) * value / static_cast<float>(factor) + smooth * value;
    }
  }
  return Make(frequencies);
}

double YarnScale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Dims that turn often over the original length are kept, those that turn seldom are stretched,
// with a linear ramp between; cosine and sine are scaled to keep the attention's temperature.
absl::StatusOr<RopeParameters> Yarn(RopeContext& context) {
  ConfigReader& reader = context.reader;
  HACKC_ASSIGN_OR_RETURN(const double factor, reader.RequiredNumber("factor", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const auto original,
                         reader.Integer("original_max_position_embeddings", 1, kMaxPositions));
  HACKC_ASSIGN_OR_RETURN(const auto attention_factor,
                         reader.Number("attention_factor", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const auto mscale, reader.Number("mscale", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const auto mscale_all_dim, reader.Number("mscale_all_dim", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const auto beta_fast, reader.Number("beta_fast", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const auto beta_slow, reader.Number("beta_slow", 0, kMaxFactor));
  HACKC_ASSIGN_OR_RETURN(const bool truncate,  // null is false, as in transformers
                         reader.Bool("truncate", !reader.IsExplicitNull("truncate")));
  double scale = YarnScale(factor, 1);
  if (attention_factor) {
    scale = *attention_factor;
  } else if (mscale && mscale_all_dim) {
    scale = YarnScale(factor, *mscale) / YarnScale(factor, *mscale_all_dim);
  }
  // The (fractional) dim that makes `turns` full turns over the original length.
  const auto dim_of_turns = [&](double turns) {
    const double length = static_cast<double>(original.value_or(context.max_positions));
    return static_cast<double>(context.head_dim) *
           std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(context.theta));
  };
  double low = dim_of_turns(beta_fast.value_or(32)), high = dim_of_turns(beta_slow.value_or(1));
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(context.head_dim - 1));
  if (low == high) high += 0.001;
  std::vector<float> frequencies = PositionFrequencies(context);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f,
        1.0f);
    const float keep = 1 - ramp;
    frequencies[i] = 1.0f / (static_cast<float>(factor) * frequencies[i]) * (1 - keep) +
                     1.0f / frequencies[i] * keep;
  }
  return Make(frequencies, scale);
}

struct RopeType {
  std::string name;
  absl::StatusOr<RopeParameters> (*make)(RopeContext& context);
};

const std::vector<RopeType>& RopeTypes() {
  static const auto* types = new std::vector<RopeType>{{"default", Default},
                                                       {"linear", Linear},
                                                       {"dynamic", Dynamic},
                                                       {"llama3", Llama3},
                                                       {"yarn", Yarn}};
  return *types;
}

absl::StatusOr<std::optional<ConfigReader>> Nested(ConfigReader& config, const std::string& key) {
  const nlohmann::json* value = config.Find(key);
  if (value == nullptr) return std::optional<ConfigReader>();
  if (!value->is_object()) {
    return config.Error(key, "expected an object or null, got ", ShortText(*value));
  }
  return std::optional<ConfigReader>(std::in_place, *value, config.Path(key));
}

// Each key of `here` must say the same in `there`, the object `name`: where both generations are
// there, versions of transformers read one or the other. Works on copies: nothing counts as read.
absl::Status RefuseDifference(ConfigReader here, ConfigReader there, ConfigReader config,
                              const std::string& name) {
  for (const std::string& key : here.UnreadKeys()) {
    HACKC_RETURN_IF_ERROR(FindSpelling({{&there, key}, {&here, key}}).status());
    const bool elsewhere = (key == "type" && there.Find("rope_type") != nullptr) ||
                           (key == "rope_type" && there.Find("type") != nullptr) ||
                           (key == "rope_theta" && config.Find(key) != nullptr);
    if (there.Find(key) == nullptr && !elsewhere) {
      return here.Error(key, "missing in ", config.Path(name),
                        "; expected it in both or only one of rope_parameters and rope_scaling");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RopeParameters> ReadRopeParameters(ConfigReader& config, int64_t head_dim,
                                                  int64_t max_positions,
                                                  const FrontendOptions& options) {
  HACKC_ASSIGN_OR_RETURN(std::optional<ConfigReader> parameters, Nested(config, "rope_parameters"));
  HACKC_ASSIGN_OR_RETURN(std::optional<ConfigReader> scaling, Nested(config, "rope_scaling"));
  ConfigReader* new_keys = parameters ? &*parameters : nullptr;
  ConfigReader* old_keys = scaling ? &*scaling : nullptr;
  if (parameters && scaling) {
    HACKC_RETURN_IF_ERROR(RefuseDifference(*scaling, *parameters, config, "rope_parameters"));
    HACKC_RETURN_IF_ERROR(RefuseDifference(*parameters, *scaling, config, "rope_scaling"));
  }

  HACKC_ASSIGN_OR_RETURN(
      const auto theta_key,
      FindSpelling({{new_keys, "rope_theta"}, {&config, "rope_theta"}, {old_keys, "rope_theta"}}));
  double theta = 10000;
  if (theta_key) {
    HACKC_ASSIGN_OR_RETURN(theta, theta_key->reader->RequiredNumber(theta_key->key, 1, kMaxTheta));
  }
  HACKC_ASSIGN_OR_RETURN(const auto type_key, FindSpelling({{new_keys, "rope_type"},
                                                            {new_keys, "type"},
                                                            {old_keys, "rope_type"},
                                                            {old_keys, "type"}}));
  std::string type = "default";
  if (type_key) {
    HACKC_ASSIGN_OR_RETURN(const auto text, type_key->reader->String(type_key->key));
    type = text.value_or("");
  }
  const RopeType* found = FindBy(RopeTypes(), &RopeType::name, type);
  if (found == nullptr) {
    const auto name = [](std::string* out, const RopeType& entry) { out->append(entry.name); };
    return type_key->reader->Error(type_key->key, ShortText(type),
                                   " is not supported; expected one of ",
                                   absl::StrJoin(RopeTypes(), ", ", name));
  }
  const nlohmann::json nothing = nlohmann::json::object();
  ConfigReader no_keys(nothing, "config.rope_parameters");
  ConfigReader* reader = new_keys != nullptr ? new_keys : old_keys != nullptr ? old_keys : &no_keys;
  RopeContext context{*reader, theta, head_dim, max_positions, options, type_key};
  HACKC_ASSIGN_OR_RETURN(const RopeParameters result, found->make(context));
  HACKC_ASSIGN_OR_RETURN(const auto partial, reader->Number("partial_rotary_factor", 0, 1));
  if (partial.value_or(1) != 1) {
    return reader->Error("partial_rotary_factor", "only 1 is supported, got ", *partial);
  }
  if (const std::vector<std::string> unread = reader->UnreadKeys(); !unread.empty()) {
    return reader->Error(unread[0], "not a parameter of rope type \"", type,
                         "\"; it may change the result, so it is refused");
  }
  for (double frequency : result.inverse_frequencies) {
    if (!std::isfinite(frequency) || !std::isfinite(result.scale)) {
      return reader->Error("factor", "gives frequencies that float32 cannot hold");
    }
  }
  return result;
}

}  // namespace hackc::frontend

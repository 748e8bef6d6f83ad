// SPDX-License-Identifier: MIT
#include "compiler/frontend/harmless_keys.h"

#include <map>
#include <set>

namespace hackc::frontend {
namespace {

// Harmless whatever their value. `pretraining_tp` only splits products that transformers then adds
// up again; `attention_dropout` and its like act in training alone; `use_cache` changes speed.
const std::set<std::string>& AnyValue() {
  static const auto* keys = new std::set<std::string>{
      // Bookkeeping.
      "_attn_implementation", "_attn_implementation_autoset", "_name_or_path",
      "attn_implementation", "is_decoder", "is_llama_config", "name_or_path", "tokenizer_class",
      "torchscript", "transformers_version", "unsloth_fixed", "unsloth_version",
      // Tokens and labels.
      "bos_token_id", "decoder_start_token_id", "eos_token_id", "finetuning_task", "id2label",
      "label2id", "num_labels", "pad_token_id", "prefix", "problem_type", "sep_token_id",
      "task_specific_params",
      // Training and run-time habits.
      "attention_dropout", "chunk_size_feed_forward", "embd_pdrop", "gradient_checkpointing",
      "hidden_dropout", "initializer_range", "output_attentions", "output_hidden_states",
      "pretraining_tp", "resid_pdrop", "return_dict", "tf_legacy_loss", "use_bfloat16", "use_cache",
      // Generation defaults.
      "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
      "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
      "forced_eos_token_id", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size",
      "num_beam_groups", "num_beams", "num_return_sequences", "output_scores",
      "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens",
      "temperature", "top_k", "top_p", "typical_p"};
  return *keys;
}

// Harmless at this value only.
const std::map<std::string, nlohmann::json>& OneValue() {
  static const auto* keys =
      new std::map<std::string, nlohmann::json>{{"add_cross_attention", false},
                                                {"attention_bias", false},
                                                {"is_encoder_decoder", false},
                                                {"mlp_bias", false},
                                                {"partial_rotary_factor", 1.0},
                                                {"pruned_heads", nlohmann::json::object()},
                                                {"rope_interleaved", false},
                                                {"tie_encoder_decoder", false},
                                                {"use_mrope", false}};
  return *keys;
}

}  // namespace

absl::StatusOr<bool> IsHarmless(const std::string& key, const nlohmann::json& value,
                                const ConfigReader& reader) {
  if (AnyValue().contains(key)) return true;
  const auto one = OneValue().find(key);
  if (one == OneValue().end()) return false;
  if (value == one->second) return true;
  return reader.Error(key, ShortText(value), " is not supported; expected ",
                      ShortText(one->second));
}

}  // namespace hackc::frontend

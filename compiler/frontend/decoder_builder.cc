// SPDX-License-Identifier: MIT
#include "compiler/frontend/decoder_builder.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/frontend/layer_kinds.h"
#include "compiler/support/name_set.h"

namespace hackc::frontend {
namespace {

using ir::Expr;
using ir::IntLit;
using ir::MakeSymbol;
using Kind = ir::SourceDecl::Kind;

class DecoderBuilder {
 public:
  DecoderBuilder(const DecoderConfig& decoder, const FrontendOptions& options)
      : decoder_(decoder), facts_(*decoder.facts), options_(options) {}

  ir::GraphModule Build() {
    module_.name = facts_.model_type;
    module_.symbols = {{"batch", options_.batch.min, options_.batch.max},
                       {"seq", options_.seq.min, options_.seq.max}};
    if (HasCache()) module_.symbols.push_back({"past", options_.past.min, options_.past.max});
    if (Paged()) module_.symbols.push_back({"pages", 1, options_.batch.max * TablePages()});
    AddSources();
    Embed();
    for (const LayerGroup& group : GroupLayers(decoder_.layers)) Layers(group);
    Head();
    return std::move(module_);
  }

 private:
  bool HasCache() const { return options_.past.max > 0; }
  bool Paged() const { return options_.page_size > 0; }
  int64_t Capacity() const { return options_.past.max + options_.seq.max; }
  int64_t TablePages() const { return (Capacity() + options_.page_size - 1) / options_.page_size; }

  ir::ValueType Activations(int64_t features) const {
    return {decoder_.dtype, {MakeSymbol("batch"), MakeSymbol("seq"), IntLit(features)}};
  }
  ir::ValueType Heads(int64_t heads) const {
    return {decoder_.dtype,
            {MakeSymbol("batch"), MakeSymbol("seq"), IntLit(heads), IntLit(decoder_.head_dim)}};
  }

  // ---- parts of the segment added last; each returns the name of the value that it made ----
  // Of the module, or of the segment added last.
  std::string Source(const std::string& base, Kind kind, ir::ValueType type,
                     std::string weight_name = "", std::vector<double> data = {}) {
    auto& sources = module_.segments.empty() ? module_.sources : module_.segments.back().sources;
    sources.push_back(
        {names_.Unique(base), kind, std::move(type), std::move(weight_name), std::move(data)});
    return sources.back().name;
  }
  std::string Weight(const std::string& base, std::vector<Expr> shape, std::string weight_name) {
    return Source(base, Kind::kWeight, {decoder_.dtype, std::move(shape)}, std::move(weight_name));
  }
  std::string Op(const std::string& base, ir::ValueType type, ir::GraphOpVariant op) {
    auto& ops = module_.segments.back().ops;
    ops.push_back({names_.Unique(base), std::move(type), std::move(op)});
    return ops.back().out;
  }
  // Publishes a value under a name outside.
  std::string Publish(const std::string& value, const std::string& base) {
    ir::GraphSegment& segment = module_.segments.back();
    segment.yields.push_back(value);
    segment.results.push_back(names_.Unique(base));
    return segment.results.back();
  }

  // ---- the model ----

  std::string Input(const std::string& name, std::vector<Expr> shape) {
    return Source(name, Kind::kInput, {ir::DType::kI32, std::move(shape)});
  }

  void AddSources() {
    const Expr batch = MakeSymbol("batch");
    Input("input_ids", {batch, MakeSymbol("seq")});
    if (HasCache()) past_lengths_ = Input("past_lengths", {batch});
    if (Paged()) page_table_ = Input("page_table", {batch, IntLit(TablePages())});
    if (options_.last_logits) last_positions_ = Input("last_positions", {batch});
    Weight("embedding_table", {IntLit(decoder_.vocab_size), IntLit(decoder_.hidden_size)},
           Layered(facts_.names.embedding, ".weight"));
    Source("inverse_frequencies", Kind::kConstant,
           {ir::DType::kF32, {IntLit(decoder_.head_dim / 2)}}, "",
           decoder_.rope.inverse_frequencies);
  }

  void Embed() {
    module_.segments.emplace_back().name = "embed";
    const std::string embedded = Op("embedding", Activations(decoder_.hidden_size),
                                    ir::GraphEmbedding{"input_ids", "embedding_table"});
    const ir::ValueType table{
        ir::DType::kF32, {MakeSymbol("batch"), MakeSymbol("seq"), IntLit(decoder_.head_dim / 2)}};
    ir::GraphRotaryTable rotary{.inverse_frequencies = "inverse_frequencies",
                                .past_lengths = past_lengths_,
                                .scale = decoder_.rope.scale,
                                .dynamic_factor = decoder_.rope.dynamic_factor,
                                .dynamic_length = decoder_.rope.dynamic_length};
    const std::string cosine = Op("cosine_table", table, rotary);
    rotary.sine = true;
    const std::string sine = Op("sine_table", table, rotary);
    hidden_ = Publish(embedded, "embedded");
    cosine_ = Publish(cosine, "cosine");
    sine_ = Publish(sine, "sine");
  }

  void Layers(const LayerGroup& group) {
    const std::string name =
        group.first_layer == 0 ? "layers" : "layers_from_" + std::to_string(group.first_layer);
    module_.segments.emplace_back().name = name;
    ir::GraphSegment& segment = module_.segments.back();
    segment.count = group.count;
    segment.first_layer = group.first_layer;
    segment.layer_step = group.period;
    std::string x = names_.Unique("x");
    segment.carries = {{x, hidden_}};
    for (int i = 0; i < group.period; ++i) {
      layer_ = i == 0 ? "{layer}" : "{layer+" + std::to_string(i) + "}";
      x = Attention(x, decoder_.layers[group.first_layer + i]);
      x = Mlp(x);
    }
    hidden_ = Publish(x, "hidden");
  }

  void Head() {
    module_.segments.emplace_back().name = "head";
    ir::ValueType rows = Activations(decoder_.hidden_size);
    if (options_.last_logits) {
      rows.shape[1] = IntLit(1);
      hidden_ = Op("last_hidden", rows, ir::GraphTakePositions{hidden_, last_positions_});
    }
    const std::string normed = Norm("final_norm", hidden_, rows, facts_.names.final_norm);
    const std::string table =
        decoder_.tied_head
            ? "embedding_table"
            : Weight("head_weight", {IntLit(decoder_.vocab_size), IntLit(decoder_.hidden_size)},
                     Layered(facts_.names.head, ".weight"));
    // Rounding the sums to the storage dtype would only lose digits: they leave as they are.
    const ir::ValueType type{ir::DType::kF32,
                             {rows.shape[0], rows.shape[1], IntLit(decoder_.vocab_size)}};
    const std::string scores = Op("scores", type, ir::GraphLinear{normed, table, ""});
    module_.outputs = {Publish(scores, "logits")};
  }

  std::string Attention(const std::string& x, const LayerKind& kind) {
    const WeightNames& names = facts_.names;
    const int64_t query_features = decoder_.heads * decoder_.head_dim;
    const std::string normed =
        Norm("attention_norm", x, Activations(decoder_.hidden_size), names.attention_norm);
    std::string query = Project("query", normed, decoder_.heads, names.query);
    std::string key = Project("key", normed, decoder_.key_value_heads, names.key);
    std::string value = Project("value", normed, decoder_.key_value_heads, names.value);
    if (facts_.query_key_norm) {
      query = Norm("query_norm", query, Heads(decoder_.heads), names.query_norm);
      key = Norm("key_norm", key, Heads(decoder_.key_value_heads), names.key_norm);
    }
    query = Op("rotated_query", Heads(decoder_.heads), ir::GraphRope{query, cosine_, sine_});
    key = Op("rotated_key", Heads(decoder_.key_value_heads), ir::GraphRope{key, cosine_, sine_});
    if (HasCache()) {
      key = Cache("key", key);
      value = Cache("value", value);
    }
    const double scale = 1 / std::sqrt(static_cast<double>(decoder_.head_dim));
    const std::string attended =
        Op("attended", Heads(decoder_.heads),
           ir::GraphAttention{query, key, value, past_lengths_, scale, kind.window});
    const std::string merged =
        Op("merged_heads", Activations(query_features), ir::GraphMergeHeads{attended});
    const std::string output = Linear("attention_output", merged, query_features,
                                      decoder_.hidden_size, names.output, decoder_.output_bias);
    return Op("attention_residual", Activations(decoder_.hidden_size), ir::GraphAdd{x, output});
  }

  std::string Mlp(const std::string& x) {
    const WeightNames& names = facts_.names;
    const int64_t hidden = decoder_.hidden_size, inner = decoder_.intermediate_size;
    const std::string normed = Norm("mlp_norm", x, Activations(hidden), names.mlp_norm);
    const std::string gate = Linear("gate", normed, hidden, inner, names.gate, decoder_.mlp_bias);
    const std::string up = Linear("up", normed, hidden, inner, names.up, decoder_.mlp_bias);
    const std::string active =
        Op("activated_gate", Activations(inner), ir::GraphActivation{gate, decoder_.activation});
    const std::string gated = Op("gated", Activations(inner), ir::GraphMultiply{active, up});
    const std::string down = Linear("down", gated, inner, hidden, names.down, decoder_.mlp_bias);
    return Op("mlp_residual", Activations(hidden), ir::GraphAdd{x, down});
  }

  // A linear layer whose features are then seen as heads.
  std::string Project(const std::string& name, const std::string& x, int64_t heads,
                      std::string_view weight) {
    const std::string flat =
        Linear(name, x, decoder_.hidden_size, heads * decoder_.head_dim, weight, decoder_.qkv_bias);
    return Op(name + "_heads", Heads(heads),
              ir::GraphSplitHeads{flat, 0, heads, decoder_.head_dim});
  }

  std::string Linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                     std::string_view weight_name, bool has_bias) {
    const std::string weight =
        Weight(name + "_weight", {IntLit(out), IntLit(in)}, Layered(weight_name, ".weight"));
    const std::string bias =
        has_bias ? Weight(name + "_bias", {IntLit(out)}, Layered(weight_name, ".bias")) : "";
    return Op(name, Activations(out), ir::GraphLinear{x, weight, bias});
  }

  std::string Norm(const std::string& name, const std::string& x, const ir::ValueType& type,
                   std::string_view weight_name) {
    const std::string weight =
        Weight(name + "_weight", {type.shape.back()}, Layered(weight_name, ".weight"));
    return Op(name, type,
              ir::GraphRmsNorm{x, weight, decoder_.norm_epsilon, facts_.norm_weight_offset});
  }

  std::string Cache(const std::string& name, const std::string& x) {
    const Expr heads = IntLit(decoder_.key_value_heads), dim = IntLit(decoder_.head_dim);
    std::vector<Expr> shape = {MakeSymbol("batch"), IntLit(Capacity()), heads, dim};
    if (Paged()) shape = {MakeSymbol("pages"), IntLit(options_.page_size), heads, dim};
    const std::string cache =
        Source(name + "_cache", Kind::kState, {decoder_.dtype, std::move(shape)},
               "layers." + layer_ + "." + name + "_cache");
    const ir::ValueType type{
        decoder_.dtype, {MakeSymbol("batch"), MakeSymbol("past") + MakeSymbol("seq"), heads, dim}};
    return Op(name + "s", type, ir::GraphCacheAppend{cache, x, past_lengths_, page_table_});
  }

  // A checkpoint name, in a layer with its placeholder.
  std::string Layered(std::string_view name, const std::string& suffix) const {
    return absl::StrReplaceAll(std::string(name) + suffix, {{"{layer}", layer_}});
  }

  const DecoderConfig& decoder_;
  const ArchitectureFacts& facts_;
  const FrontendOptions& options_;
  ir::GraphModule module_;
  NameSet names_{"_", 1};
  std::string layer_;  // "{layer}" or "{layer+1}": position in the period
  std::string hidden_, cosine_, sine_;
  std::string past_lengths_, page_table_, last_positions_;  // inputs; "" where there is none
};

}  // namespace

ir::GraphModule BuildDecoder(const DecoderConfig& decoder, const FrontendOptions& options) {
  return DecoderBuilder(decoder, options).Build();
}

}  // namespace hackc::frontend

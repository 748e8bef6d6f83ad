// SPDX-License-Identifier: MIT
#include "compiler/interp/graph_interpreter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "compiler/interp/module_run.h"
#include "compiler/support/internal_error.h"

namespace hackc::interp {
namespace {

int64_t Last(const TensorData& x) { return x.shape.back(); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Activate(ir::ActivationKind kind, double x) {
  using Kind = ir::ActivationKind;
  switch (kind) {
    case Kind::kSilu: return x * Sigmoid(x);
    case Kind::kGelu: return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    case Kind::kGeluTanh:
      return x * 0.5 *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Kind::kRelu: return x > 0 ? x : 0;
    case Kind::kTanh: return std::tanh(x);
    case Kind::kSigmoid: return Sigmoid(x);
  }
  return x;
}

double Softcap(double cap, double x) { return cap * std::tanh(x / cap); }

// Computes one operation's value into `out`.
struct GraphEvaluator {
  std::function<TensorData&(const std::string& name)> value;  // an operand; a state may be written
  int64_t past = 0;
  TensorData& out;  // has its dtype and shape, and zeros

  // Tokens of sequence `b` that are in the cache already.
  int64_t Start(const std::string& past_lengths, int64_t b) {
    if (past_lengths.empty()) return 0;
    return std::clamp<int64_t>(static_cast<int64_t>(value(past_lengths).values[b]), 0, past);
  }

  void operator()(const ir::GraphEmbedding& op) {
    const TensorData& ids = value(op.ids);
    const TensorData& table = value(op.table);
    const int64_t rows = table.shape[0], features = table.shape[1];
    for (int64_t i = 0; i < ids.size(); ++i) {
      const double row = std::clamp<double>(ids.values[i], 0, static_cast<double>(rows - 1));
      for (int64_t c = 0; c < features; ++c) {
        out.values[i * features + c] = table.values[static_cast<int64_t>(row) * features + c];
      }
    }
  }

  void operator()(const ir::GraphLinear& op) {
    const TensorData& x = value(op.x);
    const TensorData& weight = value(op.weight);
    const int64_t in = Last(x), outs = Last(out), rows = x.size() / in;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < outs; ++n) {
        double sum = op.bias.empty() ? 0 : value(op.bias).values[n];
        for (int64_t k = 0; k < in; ++k) {
          sum += x.values[r * in + k] * weight.values[op.transposed ? k * outs + n : n * in + k];
        }
        out.values[r * outs + n] = sum;
      }
    }
  }

  void operator()(const ir::GraphRmsNorm& op) {
    const TensorData& x = value(op.x);
    const TensorData& weight = value(op.weight);
    const int64_t features = Last(x);
    for (int64_t start = 0; start < x.size(); start += features) {
      double squares = 0;
      for (int64_t c = 0; c < features; ++c) squares += x.values[start + c] * x.values[start + c];
      const double root = std::sqrt(squares / static_cast<double>(features) + op.epsilon);
      for (int64_t c = 0; c < features; ++c) {
        out.values[start + c] = x.values[start + c] / root * (weight.values[c] + op.weight_offset);
      }
    }
  }

  void operator()(const ir::GraphLayerNorm& op) {
    const TensorData& x = value(op.x);
    const TensorData& weight = value(op.weight);
    const int64_t features = Last(x);
    for (int64_t start = 0; start < x.size(); start += features) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < features; ++c) sum += x.values[start + c];
      const double mean = sum / static_cast<double>(features);
      for (int64_t c = 0; c < features; ++c) squares += std::pow(x.values[start + c] - mean, 2);
      const double root = std::sqrt(squares / static_cast<double>(features) + op.epsilon);
      for (int64_t c = 0; c < features; ++c) {
        out.values[start + c] = (x.values[start + c] - mean) / root * weight.values[c] +
                                (op.bias.empty() ? 0 : value(op.bias).values[c]);
      }
    }
  }

  void operator()(const ir::GraphRotaryTable& op) {
    for (int64_t b = 0; b < out.shape[0]; ++b) {
      const int64_t start = Start(op.past_lengths, b);
      std::vector<double> frequencies = value(op.inverse_frequencies).values;
      if (op.dynamic_factor > 0) {
        const double excess =
            static_cast<double>(start + out.shape[1]) / static_cast<double>(op.dynamic_length) - 1;
        const double stretch = 1 + op.dynamic_factor * std::max(0.0, excess);
        const double last = static_cast<double>(frequencies.size() - 1);
        for (size_t j = 0; j < frequencies.size(); ++j) {
          frequencies[j] /= std::pow(stretch, static_cast<double>(j) / last);
        }
      }
      for (int64_t s = 0; s < out.shape[1]; ++s) {
        for (int64_t j = 0; j < out.shape[2]; ++j) {
          const double angle = static_cast<double>(start + s) * frequencies[j];
          out.At({b, s, j}) = op.scale * (op.sine ? std::sin(angle) : std::cos(angle));
        }
      }
    }
  }

  void operator()(const ir::GraphRope& op) {
    const TensorData& x = value(op.x);
    const TensorData& cosine = value(op.cosine);
    const TensorData& sine = value(op.sine);
    const int64_t half = Last(cosine);
    out.values = x.values;
    for (int64_t b = 0; b < x.shape[0]; ++b) {
      for (int64_t s = 0; s < x.shape[1]; ++s) {
        for (int64_t h = 0; h < x.shape[2]; ++h) {
          for (int64_t j = 0; j < half; ++j) {
            const int64_t first = op.interleaved ? 2 * j : j;
            const int64_t second = op.interleaved ? 2 * j + 1 : j + half;
            const double c = cosine.At({b, s, j}), d = sine.At({b, s, j});
            const double u = x.At({b, s, h, first}), v = x.At({b, s, h, second});
            out.At({b, s, h, first}) = u * c - v * d;
            out.At({b, s, h, second}) = v * c + u * d;
          }
        }
      }
    }
  }

  void operator()(const ir::GraphSplitHeads& op) {
    const TensorData& x = value(op.x);
    const int64_t features = Last(x), used = op.heads * op.head_dim;
    for (int64_t row = 0; row < x.size() / features; ++row) {
      for (int64_t i = 0; i < used; ++i) {
        out.values[row * used + i] = x.values[row * features + op.first + i];
      }
    }
  }

  void operator()(const ir::GraphMergeHeads& op) { out.values = value(op.x).values; }

  void operator()(const ir::GraphAttention& op) {
    const TensorData& q = value(op.q);
    const TensorData& k = value(op.k);
    const TensorData& v = value(op.v);
    const int64_t group = q.shape[2] / k.shape[2], dim = q.shape[3];
    for (int64_t b = 0; b < q.shape[0]; ++b) {
      const int64_t start = Start(op.past_lengths, b);
      for (int64_t s = 0; s < q.shape[1]; ++s) {
        const int64_t end = start + s + 1;
        const int64_t begin = op.window > 0 ? std::max<int64_t>(0, end - op.window) : 0;
        for (int64_t h = 0; h < q.shape[2]; ++h) {
          std::vector<double> weights;
          for (int64_t t = begin; t < end; ++t) {
            double score = 0;
            for (int64_t d = 0; d < dim; ++d) {
              score += q.At({b, s, h, d}) * k.At({b, t, h / group, d});
            }
            score *= op.scale;
            weights.push_back(op.softcap > 0 ? Softcap(op.softcap, score) : score);
          }
          const double largest = *std::max_element(weights.begin(), weights.end());
          double sum = 0;
          for (double& weight : weights) sum += weight = std::exp(weight - largest);
          for (int64_t d = 0; d < dim; ++d) {
            double mixed = 0;
            for (int64_t t = begin; t < end; ++t) {
              mixed += weights[t - begin] * v.At({b, t, h / group, d});
            }
            out.At({b, s, h, d}) = mixed / sum;
          }
        }
      }
    }
  }

  void operator()(const ir::GraphCacheAppend& op) {
    TensorData& cache = value(op.cache);
    const TensorData& x = value(op.x);
    const int64_t row = x.shape[2] * x.shape[3];
    // The cached row of a position, or null where no page holds it.
    const auto place = [&](int64_t b, int64_t position) -> double* {
      int64_t block = b;
      if (!op.page_table.empty()) {
        block = static_cast<int64_t>(value(op.page_table).At({b, position / cache.shape[1]}));
        position %= cache.shape[1];
        if (block < 0 || block >= cache.shape[0]) return nullptr;
      }
      return cache.values.data() + (block * cache.shape[1] + position) * row;
    };
    for (int64_t b = 0; b < x.shape[0]; ++b) {
      const int64_t start = Start(op.past_lengths, b);
      for (int64_t s = 0; s < x.shape[1]; ++s) {
        const auto fresh = x.values.begin() + (b * x.shape[1] + s) * row;
        if (double* cached = place(b, start + s)) std::copy(fresh, fresh + row, cached);
      }
    }
    for (int64_t b = 0; b < out.shape[0]; ++b) {
      for (int64_t t = 0; t < out.shape[1]; ++t) {
        const auto target = out.values.begin() + (b * out.shape[1] + t) * row;
        if (const double* cached = place(b, t)) std::copy(cached, cached + row, target);
      }
    }
  }

  void operator()(const ir::GraphTakePositions& op) {
    const TensorData& x = value(op.x);
    for (int64_t b = 0; b < out.shape[0]; ++b) {
      int64_t position = x.shape[1] - 1;
      if (!op.positions.empty()) {
        const auto wanted = static_cast<int64_t>(value(op.positions).values[b]);
        position = std::clamp<int64_t>(wanted, 0, position);
      }
      for (int64_t c = 0; c < out.shape[2]; ++c) out.At({b, 0, c}) = x.At({b, position, c});
    }
  }

  void Pointwise(const std::string& x, const std::function<double(double)>& function) {
    const TensorData& operand = value(x);
    std::transform(operand.values.begin(), operand.values.end(), out.values.begin(), function);
  }

  void operator()(const ir::GraphActivation& op) {
    Pointwise(op.x, [&](double x) { return Activate(op.kind, x); });
  }

  void operator()(const ir::GraphScale& op) {
    Pointwise(op.x, [&](double x) { return op.factor * x; });
  }

  void operator()(const ir::GraphSoftcap& op) {
    Pointwise(op.x, [&](double x) { return Softcap(op.cap, x); });
  }

  void operator()(const ir::GraphMultiply& op) {
    const std::vector<double>&a = value(op.a).values, &b = value(op.b).values;
    std::transform(a.begin(), a.end(), b.begin(), out.values.begin(), std::multiplies<>());
  }
  void operator()(const ir::GraphAdd& op) {
    const std::vector<double>&a = value(op.a).values, &b = value(op.b).values;
    std::transform(a.begin(), a.end(), b.begin(), out.values.begin(), std::plus<>());
  }

  void operator()(const ir::GraphConcat& op) {
    out.values.clear();
    for (const std::string& name : op.inputs) {
      const TensorData& part = value(name);
      out.values.insert(out.values.end(), part.values.begin(), part.values.end());
    }
  }
};

}  // namespace

absl::StatusOr<std::map<std::string, TensorData>> RunGraph(const ir::GraphModule& module,
                                                           const RunInputs& run) {
  const auto past = run.symbols.find("past");
  return RunModule(
      module, run,
      [&](const ir::GraphOp& op, Environment& environment) -> absl::StatusOr<TensorData> {
        HACKC_ASSIGN_OR_RETURN(TensorData out, environment.Zeros(op.type));
        const auto value = [&](const std::string& name) -> TensorData& {
          TensorData* data = environment.Find(name);
          HACKC_CHECK(data != nullptr) << "%" << op.out << " reads unknown %" << name;
          return *data;
        };
        std::visit(GraphEvaluator{value, past == run.symbols.end() ? 0 : past->second, out}, op.op);
        return out;
      });
}

}  // namespace hackc::interp

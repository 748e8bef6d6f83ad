// SPDX-License-Identifier: MIT
// Kernels written by hand in tests/data/kernels, for instructions that no pass emits yet. The first
// word of a file's name says what must come out:
//   copy     y = x, bit for bit
//   product  y = a b (`turned`: b is [k, n]) or a b^T, added to what was in y when it is
//            `readwrite`
//   sum      y += the rows of x
//
//   std::vector<std::string> names = HandWritten();
//   Case c = ReadHandWritten("copy_rank1");     // c.text, c.kernel, c.symbols
//   interp::FunctionRun run = Inputs(c, /*seed=*/1);
//   Expected(c, run)                            // y and how far from it is still right
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "compiler/interp/function_run.h"
#include "compiler/interp/warp_matrix.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "gtest/gtest.h"
#include "tools/opt/case_file.h"

namespace hackc::kernels {

struct Case {
  std::string name, text;
  ir::KernelFn kernel;
  std::map<std::string, int64_t> symbols;
};

inline std::filesystem::path Folder() {
  return std::filesystem::path(HACKC_SOURCE_DIR) / "tests/data/kernels";
}

inline std::vector<std::string> HandWritten() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() == ".hir") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Case ParseCase(const std::string& name, std::string text) {
  Case c{name, std::move(text), {}, {}};
  auto file = opt::ReadCase(c.text);
  if (!file.ok()) throw std::runtime_error(std::string(file.status().message()));
  auto kernel = ir::ParseKernel(file->input);
  if (!kernel.ok()) throw std::runtime_error(name + ": " + std::string(kernel.status().message()));
  c.kernel = *std::move(kernel);
  c.symbols = file->symbols;
  return c;
}

inline Case ReadHandWritten(const std::string& name) {
  std::ifstream file(Folder() / (name + ".hir"));
  return ParseCase(name, std::string(std::istreambuf_iterator<char>(file), {}));
}

inline int64_t Value(const ir::Expr& e, const std::map<std::string, int64_t>& symbols) {
  const ir::Expr value = ir::Rewrite(e, [&](const ir::Expr& node) -> ir::Expr {
    const auto* symbol = ir::As<ir::Symbol>(node);
    return symbol ? ir::IntLit(symbols.at(symbol->name)) : nullptr;
  });
  return ir::AsInt(value).value();
}

// Random, and such that tf32 holds every float32.
inline interp::FunctionRun Inputs(const Case& c, int seed) {
  interp::FunctionRun run;
  run.symbols = c.symbols;
  run.arithmetic = interp::Arithmetic::kHardware;
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (const ir::BufferDecl& buffer : c.kernel.fn.buffers) {
    if (buffer.access == ir::Access::kWrite) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer.shape) shape.push_back(Value(extent, c.symbols));
    interp::TensorData data = interp::TensorData::Zeros(buffer.dtype, shape);
    for (double& value : data.values) {
      value = ir::IsFloat(buffer.dtype) ? interp::ToTf32(normal(generator))
                                        : static_cast<double>(generator());
    }
    data.Round();
    run.buffers[buffer.name] = std::move(data);
  }
  return run;
}

struct Truth {
  std::vector<double> values, bounds;
};

inline Truth Expected(const Case& c, const interp::FunctionRun& inputs) {
  Truth truth;
  const std::string what = c.name.substr(0, c.name.find('_'));
  const auto& buffers = inputs.buffers;
  if (what == "copy") {
    truth.values = buffers.at("x").values;
    truth.bounds.resize(truth.values.size());
    return truth;
  }
  if (what == "sum") {
    truth.values = buffers.at("y").values;
    truth.bounds.resize(truth.values.size());
    const interp::TensorData& x = buffers.at("x");
    const int64_t n = x.shape[1];
    for (int64_t i = 0; i < x.size(); ++i) {
      truth.values[i % n] += x.values[i];
      truth.bounds[i % n] += std::ldexp(std::abs(x.values[i]) + 1, -20);
    }
    return truth;
  }
  const interp::TensorData &a = buffers.at("a"), &b = buffers.at("b");
  const bool turned = c.name.find("turned") != std::string::npos;
  const int64_t m = a.shape[0], k = a.shape[1], n = b.shape[turned ? 1 : 0];
  truth.values.resize(m * n);
  truth.bounds.resize(m * n);
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0, size = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double term =
          a.values[i / n * k + j] * b.values[turned ? j * n + i % n : i % n * k + j];
      sum += term;
      size += std::abs(term);
    }
    if (buffers.count("y")) sum += buffers.at("y").values[i];
    truth.values[i] = sum;
    truth.bounds[i] = std::ldexp(size + std::abs(sum), -24) * static_cast<double>(k);
  }
  return truth;
}

}  // namespace hackc::kernels

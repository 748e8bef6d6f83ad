// SPDX-License-Identifier: MIT
// Text of any IR level: what parses prints as a fixed point, verifiers say something of every
// module and never crash, and what verifies and is small runs in its interpreter without leaving
// its buffers. A golden case file is taken apart at its `# ----` lines, so that tests/golden is a
// corpus.
#include <algorithm>
#include <exception>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/support/cat.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"
#include "tools/opt/unit.h"

namespace hackc::fuzz {
namespace {

constexpr double kMaxSteps = 20000;    // of all threads together
constexpr double kMaxElements = 4096;  // of one value or buffer

// Largest product of the extents; a negative or unknown one counts as too many.
double Volume(const std::vector<ir::Expr>& extents, const ir::RangeMap& ranges) {
  double volume = 1;
  for (const ir::Expr& extent : extents) {
    const ir::Range bounds = ir::Bounds(extent, ranges);
    volume *= bounds.min < 0 ? 1e30 : static_cast<double>(bounds.max);
  }
  return volume;
}

// Iterations of all loops, with the symbols' values in `ranges`.
double Steps(const ir::Block& block, ir::RangeMap& ranges) {
  double steps = 0;
  for (const ir::Stmt& s : block) {
    double own = 1;
    if (const ir::For* loop = ir::As<ir::For>(s)) {
      const double trips = Volume({loop->extent}, ranges);
      ranges.SetAxis(loop->axis, loop->extent);
      own += trips * (1 + Steps(loop->body, ranges));
    } else if (const ir::Alloc* alloc = ir::As<ir::Alloc>(s)) {
      for (int64_t extent : alloc->extents) own *= static_cast<double>(extent);
    } else if (const ir::Accumulator* acc = ir::As<ir::Accumulator>(s)) {
      own *= Volume(acc->extents, ranges);
    } else {
      own += Steps(ir::ChildBlock(s), ranges);
    }
    steps += own;
  }
  return steps;
}

double FunctionSteps(const opt::KernelFunction& function, ir::RangeMap ranges) {
  const ir::Function& fn = opt::FunctionOf(function);
  for (const ir::BufferDecl& buffer : fn.buffers) {
    if (Volume(buffer.shape, ranges) > kMaxElements) return 1e30;
  }
  double steps = 0, threads = 1;
  if (const auto* kernel = std::get_if<ir::KernelFn>(&function)) {
    for (auto kind : {ir::BuiltinKind::kThread, ir::BuiltinKind::kBlockX, ir::BuiltinKind::kBlockY,
                      ir::BuiltinKind::kBlockZ}) {
      ranges.SetBuiltin(kind, {0, 1023});
    }
    threads = kernel->threads * Volume(kernel->grid, ranges);
  }
  steps = Steps(fn.body, ranges);
  return (1 + steps) * threads;  // threads of an empty body are run, too
}

// Each operation runs over its own axes and over those that it sums.
double OpSteps(const ir::TensorOp& op, ir::RangeMap ranges) {
  double steps = 1;
  for (const std::vector<ir::TensorAxis>& axes : {ir::FreeAxes(op), ir::ReducedAxes(op)}) {
    for (const ir::TensorAxis& axis : axes) {
      steps *= Volume({axis.extent}, ranges);
      ranges.SetAxis(axis.name, axis.extent);
    }
  }
  return steps;
}

// A Graph operation multiplies at most two of its values.
double OpSteps(const ir::GraphOp& op, const ir::RangeMap& ranges) {
  return Volume(op.type.shape, ranges) * 256;
}

template <typename Op>
double ModuleSteps(const ir::Module<Op>& module, const ir::RangeMap& ranges) {
  double steps = 0;
  const auto add = [&](const std::vector<ir::SourceDecl>& sources) {
    for (const ir::SourceDecl& source : sources) {
      const double volume = Volume(source.type.shape, ranges);
      steps += volume > kMaxElements ? 1e30 : volume;
    }
  };
  add(module.sources);
  for (const auto& segment : module.segments) {
    double once = 1;
    for (const Op& op : segment.ops) {
      const double volume = Volume(op.type.shape, ranges);
      once += (volume > kMaxElements ? 1e30 : volume) + OpSteps(op, ranges);
    }
    add(segment.sources);
    steps += once * segment.count;
  }
  return steps;
}

double StepsOf(const opt::Unit& unit, const ir::RangeMap& ranges) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&unit)) return ModuleSteps(*graph, ranges);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&unit)) {
    return ModuleSteps(*tensor, ranges);
  }
  double steps = 0;
  for (const opt::KernelFunction& function : std::get<opt::Kernels>(unit).functions) {
    // Chunks overhang until axes are split, and the verifier does not know where to.
    const auto* tile = std::get_if<ir::TileFn>(&function);
    steps +=
        tile != nullptr && !opt::IsSplit(tile->fn.body) ? 1e30 : FunctionSteps(function, ranges);
  }
  return steps;
}

void Run(const opt::Unit& unit, const std::string& text) {
  const auto symbols = opt::CompleteSymbols(unit, {});
  if (!symbols.ok()) return;
  ir::RangeMap ranges;
  for (const auto& [name, value] : *symbols) ranges.SetSymbol(name, {value, value});
  if (!(StepsOf(unit, ranges) <= kMaxSteps)) return;
  const absl::Status status = opt::Interpret(unit, {.symbols = *symbols}).status();
  if (status.message().find("is outside extent") != std::string_view::npos) {
    Violation("what verifies stays inside its buffers", Cat(status.ToString(), "\n", text));
  }
}

void Check(std::string_view text) {
  absl::StatusOr<opt::Unit> unit = opt::Parse(text);
  if (!unit.ok()) {
    if (unit.status().code() == absl::StatusCode::kInvalidArgument) return;
    Violation("bad text is INVALID_ARGUMENT", unit.status().ToString());
  }
  const std::string printed = opt::Print(*unit);
  const absl::StatusOr<opt::Unit> again = opt::Parse(printed);
  if (!again.ok()) Violation("printed text parses", Cat(again.status().ToString(), "\n", printed));
  if (opt::Print(*again) != printed) {
    Violation("printed text is a fixed point", Cat(printed, "\nbecame\n", opt::Print(*again)));
  }
  if (!opt::Verify(*unit, {}).empty()) return;
  try {
    Run(*unit, printed);
  } catch (const std::exception& error) {
    Violation("what verifies can be run", Cat(error.what(), "\n", printed));
  }
}

}  // namespace

std::string Mutate(std::string input, Random& random) {
  return MutateText(std::move(input), random);
}

}  // namespace hackc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kSeparator = "# ----";
  while (true) {
    const size_t end = text.find(kSeparator);
    hackc::fuzz::Check(text.substr(0, end));
    if (end == std::string_view::npos) return 0;
    text.remove_prefix(end + kSeparator.size());
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

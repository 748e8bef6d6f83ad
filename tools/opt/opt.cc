// SPDX-License-Identifier: MIT
#include "tools/opt/opt.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <optional>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "compiler/compile.h"
#include "compiler/passes/plugin.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"
#include "tools/opt/case_file.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"

namespace hackc::opt {
namespace {

struct Options {
  std::string passes, emit, symbols, target, plugin, file = "-";
  std::optional<uint64_t> seed;
  bool has_passes = false, verify = false, interp = false, time = false, dump = false, list = false;
};

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("--passes", options.passes, "Run exactly these, in this order: a,b; or none");
  app.add_option("--emit", options.emit,
                 "Level to print; without --passes the pipeline's passes up to it are run")
      ->check(CLI::IsMember(
          std::vector<std::string>(ir::kNamesOf<Level>.begin(), ir::kNamesOf<Level>.end())));
  app.add_flag("--verify", options.verify, "Verify the input and what each pass leaves");
  app.add_flag("--interp", options.interp,
               "Verify as --verify does, then run input and output on the same random data and "
               "compare");
  app.add_option("--seed", options.seed, "Of the random data (1)");
  app.add_option("--symbols", options.symbols, "Sizes for --interp: seq=7,batch=1 (others: 5)");
  app.add_option("--target", options.target, "What schedules are chosen for (sm_90a)");
  app.add_flag("--time", options.time, "Print how long each step took");
  app.add_flag("--dump-after-each", options.dump, "Print the IR that each pass leaves");
  app.add_option("--pass-plugin", options.plugin, "A shared library that adds passes")
      ->check(CLI::ExistingFile);
  app.add_flag("--list-passes", options.list, "Print all passes and the levels that they connect");
  app.add_option("file", options.file, "IR text, or - for standard input");
}

class Session {
 public:
  Session(const Options& options, std::ostream& out, std::ostream& err)
      : options_(options), out_(out), err_(err) {}

  ExitCode Run(std::string_view text) {
    absl::StatusOr<CaseFile> file = ReadCase(text);
    if (!file.ok()) return FailAt(file.status());
    if (!options_.target.empty()) file->target = options_.target;
    if (absl::Status status = Settle(*file); !status.ok()) return Fail(kExitUsage, status);
    verify_ = options_.verify || options_.interp || file->verify;
    if (IsCall(*file)) return RunCall(*file);

    absl::StatusOr<Unit> input = absl::InvalidArgumentError("");
    Timed("parse", [&] { input = Parse(file->input); });
    if (!input.ok()) return FailAt(input.status());
    if (!Verified("input", *input)) return kExitWrong;

    std::vector<std::string> passes = file->passes;
    std::optional<Level> emit = FromName<Level>(options_.emit);
    if (passes == std::vector<std::string>{"emit_cuda"}) {
      passes.clear();
      if (!emit && !options_.has_passes) emit = Level::kCuda;
    }
    if (options_.has_passes) {
      if (options_.passes != "none")
        passes = SplitCommas(options_.passes);
      else
        passes.clear();
    } else if (emit) {
      passes = DefaultPasses(*input, *emit);
    }
    Unit unit = *input;
    for (const std::string& pass : passes) {
      absl::StatusOr<Unit> next = absl::InternalError("");
      Timed(pass, [&] { next = RunPass(pass, unit, target_); });
      if (!next.ok()) {
        const bool usage = next.status().code() == absl::StatusCode::kNotFound ||
                           next.status().code() == absl::StatusCode::kFailedPrecondition;
        const bool wrong = next.status().code() == absl::StatusCode::kInvalidArgument;
        return Fail(usage ? kExitUsage : wrong ? kExitWrong : kExitInternal, next.status());
      }
      unit = *std::move(next);
      if (options_.dump) err_ << "# after " << pass << "\n" << Print(unit);
      if (!Verified("after " + pass, unit)) return kExitWrong;
    }
    const Level level = LevelOf(unit);
    const Level shown = emit.value_or(level);
    if (shown != level && !(shown == Level::kCuda && level == Level::kKernel)) {
      return Fail(kExitUsage, absl::InvalidArgumentError(Cat("--emit=", Name(shown), ": got ",
                                                             Name(level), " IR to print")));
    }
    const ExitCode compared = options_.interp ? Compare(*input, unit, *file, passes) : kExitOk;
    std::string result;
    try {
      Timed(shown == Level::kCuda ? "emit_cuda" : "print",
            [&] { result = shown == Level::kCuda ? PrintCuda(unit) : Print(unit); });
    } catch (const std::exception& error) {
      return Fail(kExitInternal, absl::InternalError(Cat("pass emit_cuda: ", error.what())));
    }
    out_ << result << std::flush;
    return compared;
  }

 private:
  static bool IsCall(const CaseFile& file) {
    static const std::vector<std::string> kCalls = {"program", "reference", "nvrtc"};
    return file.passes.size() == 1 &&
           std::find(kCalls.begin(), kCalls.end(), file.passes[0]) != kCalls.end();
  }

  // A call of compile.h; what it makes is not kept.
  ExitCode RunCall(const CaseFile& file) {
    const std::string& call = file.passes[0];
    const std::string below = file.input.substr(file.input.find('\n') + 1);
    absl::Status status;
    Timed(call, [&] {
      if (call == "nvrtc") {
        KernelSource source;
        source.kernel.entry = file.entry;
        source.kernel.arch = target_.arch;
        source.cuda = below;
        status = CompileKernel(source).status();
      } else if (call == "reference") {
        status = ReferenceKernel(file.input, target_.arch).status();
      } else if (below.starts_with('{')) {
        CompileRequest request = file.request;
        request.config_json = below;
        request.arch = target_.arch;
        status = PlanProgram(request).status();
      } else {
        status = PlanGraph(file.input, target_.arch).status();
      }
    });
    if (status.ok()) return kExitOk;
    return absl::IsInvalidArgument(status) ? FailAt(status) : Fail(kExitInternal, status);
  }

  // "line 3, column 7: what" and "line 3: what" as FILE:3:7: what and FILE:3: what.
  std::string Located(std::string text) const {
    constexpr std::string_view kLine = "line ", kColumn = ", column ";
    if (!text.starts_with(kLine)) return Cat("hackc-opt: ", text);
    text = Cat(options_.file == "-" ? "<stdin>" : options_.file, ":", text.substr(kLine.size()));
    const size_t column = text.find(kColumn), colon = text.find(": ");
    if (column < colon) text.replace(column, kColumn.size(), ":");
    return text;
  }

  ExitCode FailAt(const absl::Status& status) {
    err_ << Located(std::string(status.message())) << std::endl;
    return kExitWrong;
  }

  ExitCode Fail(ExitCode code, const absl::Status& status) {
    err_ << "hackc-opt: " << std::string(status.message()) << std::endl;
    return code;
  }

  // What the command line says wins over the file's first line.
  absl::Status Settle(CaseFile& file) {
    HACKC_ASSIGN_OR_RETURN(target_, schedule::FindTarget(file.target));
    if (options_.seed) file.seed = *options_.seed;
    if (!options_.symbols.empty()) {
      HACKC_ASSIGN_OR_RETURN(file.symbols, ParseSymbols(options_.symbols));
    }
    return absl::OkStatus();
  }

  template <typename Work>
  void Timed(const std::string& step, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!options_.time) return;
    err_ << std::fixed << std::setprecision(3) << std::setw(12) << took.count() << " ms  " << step
         << "\n";
  }

  bool Verified(const std::string& when, const Unit& unit) {
    if (!verify_) return true;
    std::vector<std::string> errors;
    Timed("verify", [&] { errors = Verify(unit, schedule::LimitsOf(target_)); });
    for (const std::string& error : errors) {
      err_ << (when == "input" ? Located(error) : Cat("hackc-opt: ", when, ": ", error)) << "\n";
    }
    return errors.empty();
  }

  ExitCode Compare(const Unit& input, const Unit& output, const CaseFile& file,
                   const std::vector<std::string>& passes) {
    RandomRun run;
    run.seed = file.seed;
    absl::StatusOr<std::map<std::string, int64_t>> symbols = CompleteSymbols(input, file.symbols);
    if (!symbols.ok()) return Fail(kExitUsage, symbols.status());
    run.symbols = *symbols;
    run.barriers_may_lack = !passes.empty();
    absl::StatusOr<Results> before = absl::InternalError(""), after = before;
    Timed(Cat("interpret ", Name(LevelOf(input))), [&] { before = Interpret(input, run); });
    if (!before.ok()) return Fail(kExitWrong, before.status());
    run.barriers_may_lack &= std::count(passes.begin(), passes.end(), "insert_barriers") == 0;
    Timed(Cat("interpret ", Name(LevelOf(output))), [&] { after = Interpret(output, run); });
    if (!after.ok()) return Fail(kExitWrong, after.status());
    absl::StatusOr<double> difference = LargestDifference(*before, *after);
    if (!difference.ok()) return Fail(kExitWrong, difference.status());
    err_ << "largest relative difference " << std::defaultfloat << *difference << ", at most "
         << kExactTolerance << ", at seed " << run.seed;
    for (const auto& [name, value] : run.symbols) err_ << " " << name << "=" << value;
    err_ << std::endl;
    return *difference <= kExactTolerance ? kExitOk : kExitWrong;
  }

  const Options& options_;
  std::ostream& out_;
  std::ostream& err_;
  schedule::Target target_;
  bool verify_ = false;
};

}  // namespace

int RunOpt(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
           std::ostream& err) {
  CLI::App app("Runs passes on IR text of any level. The first line of the text says its level.",
               "hackc-opt");
  app.footer(
      "Without --passes and --emit the passes run that the text's first line names (# pass: a,b).\n"
      "Exit codes: 0 all is well, 1 the text is no IR or its schedule does not fit, --verify found "
      "errors or --interp errors or a difference, "
      "2 usage, 3 a pass, another step of the compiler or NVRTC broke off.");
  Options options;
  AddOptions(app, options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kExitOk : kExitUsage;
  }
  options.has_passes = app.count("--passes") > 0;
  if (!options.plugin.empty()) {
    if (absl::Status loaded = passes::LoadPassPlugin(options.plugin); !loaded.ok()) {
      err << "hackc-opt: " << std::string(loaded.message()) << std::endl;
      return kExitUsage;
    }
  }
  if (options.list) {
    for (const Pass& pass : Passes()) {
      out << std::left << std::setw(20) << pass.name << Name(pass.takes) << " -> "
          << Name(pass.gives) << "\n";
    }
    return kExitOk;
  }
  std::ifstream file;
  if (options.file != "-") {
    file.open(options.file);
    if (!file) {
      err << "hackc-opt: " << options.file << ": cannot be read\n";
      return kExitUsage;
    }
  }
  std::istream& source = options.file == "-" ? in : file;
  const std::string text{std::istreambuf_iterator<char>(source), {}};
  return Session(options, out, err).Run(text);
}

}  // namespace hackc::opt

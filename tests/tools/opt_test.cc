// SPDX-License-Identifier: MIT
#include "tools/opt/opt.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/ir/graph_sample.h"
#include "tools/opt/case_file.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"

namespace hackc::opt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome Opt(const std::vector<std::string>& arguments, const std::string& text = "") {
  std::istringstream in(text);
  std::ostringstream out, err;
  const int code = RunOpt(arguments, in, out, err);
  return {code, out.str(), err.str()};
}

constexpr char kScale[] = R"(hackc loop 1
fn scale "doubles" {
  symbol seq in 1..64
  read @x: f32[seq, 8]
  write @y: f32[seq, 8]
  for %s: free in seq {
    for %c: free in 8 {
      @y[%s, %c] = (@x[%s, %c] * 2.0)
    }
  }
}
)";

TEST(Opt, EveryLevelMeansTheSameAndIsReadBack) {
  for (const char* level : {"graph", "tensor", "loop", "tile"}) {
    SCOPED_TRACE(level);
    const Outcome made = Opt({"--emit", level, "--verify", "--interp", "--symbols=seq=3,batch=1"},
                             ir::kEveryGraphOp);
    EXPECT_EQ(made.code, kExitOk) << made.err;
    EXPECT_THAT(made.err, HasSubstr("at seed 1 batch=1 pages=5 past=5 seq=3\n"));
    const Outcome read = Opt({"--verify"}, made.out);
    EXPECT_EQ(read.code, kExitOk) << read.err;
    EXPECT_THAT(read.out, HasSubstr("hackc " + std::string(level) + " 1\n"));
  }
}

TEST(Opt, WithoutPassesTheTextComesBack) { EXPECT_EQ(Opt({}, kScale).out, kScale); }

TEST(Opt, KernelsOfLoopsUpToCuda) {
  const Outcome kernel = Opt({"--emit=kernel", "--verify", "--interp", "--time"}, kScale);
  EXPECT_EQ(kernel.code, kExitOk) << kernel.err;
  EXPECT_THAT(kernel.err, HasSubstr(" ms  insert_barriers\n"));
  const Outcome cuda = Opt({"--emit=cuda"}, kernel.out);
  EXPECT_EQ(cuda.code, kExitOk) << cuda.err;
  EXPECT_THAT(cuda.out, HasSubstr("hackc_scale"));
}

TEST(Opt, PassesRunAsNamedAndAreShown) {
  const Outcome tile = Opt({"--passes=expand_softmax,split_axes", "--dump-after-each"}, kScale);
  EXPECT_EQ(tile.code, kExitOk);
  EXPECT_THAT(tile.err, StartsWith("# after expand_softmax\nhackc tile 1\n"));
  EXPECT_THAT(tile.err, HasSubstr("# after split_axes\nhackc tile 1\n"));
  // What is split already is not split again.
  const Outcome again = Opt({"--emit=tile"}, tile.out);
  EXPECT_EQ(again.out, tile.out);
}

TEST(Opt, TheFilesFirstLineCountsUnlessTheCommandLineSaysOtherwise) {
  const std::string text = "# pass: choose_schedule  symbols: seq=2  seed: 3  target: sm_80\n" +
                           std::string(kScale) + "# ---- expected\nnothing that parses\n";
  const Outcome plain = Opt({"--interp"}, text);
  EXPECT_EQ(plain.code, kExitOk) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("schedule {"));
  EXPECT_THAT(plain.err, HasSubstr("at seed 3 seq=2\n"));
  const Outcome other = Opt({"--interp", "--passes=none", "--seed=4", "--symbols=seq=7"}, text);
  EXPECT_EQ(other.out, kScale);
  EXPECT_THAT(other.err, HasSubstr("at seed 4 seq=7\n"));
  const Outcome wrong = Opt({}, "# pass: a  color: red\n" + std::string(kScale));
  EXPECT_EQ(wrong.code, kExitWrong);
  EXPECT_THAT(wrong.err, StartsWith("<stdin>:1: expected `pass: NAMES`, "));
}

// A schedule is applied once.
TEST(Opt, AxesThatAreSplitAreNotSplitAgain) {
  const Outcome tile = Opt({"--passes=choose_schedule,split_axes"}, kScale);
  ASSERT_EQ(tile.code, kExitOk) << tile.err;
  const Outcome again = Opt({"--passes=split_axes"}, tile.out);
  EXPECT_EQ(again.code, kExitWrong);
  EXPECT_THAT(again.err, HasSubstr("scale: expected Tile IR of whole axes, got some that are split "
                                   "already: %"));
}

TEST(Opt, WrongUse) {
  const Outcome unknown = Opt({"--passes=unroll"}, kScale);
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, StartsWith("hackc-opt: there is no pass unroll; there are fuse_proj"));
  const Outcome level = Opt({"--passes=dead_values"}, kScale);
  EXPECT_EQ(level.code, kExitUsage);
  EXPECT_EQ(level.err, "hackc-opt: pass dead_values takes tensor IR, got loop IR\n");
  EXPECT_EQ(Opt({"--emit=graph"}, kScale).err, "hackc-opt: --emit=graph: got loop IR to print\n");
  EXPECT_EQ(Opt({"--emit=hardware"}, kScale).code, kExitUsage);
  EXPECT_EQ(Opt({"--interp", "--symbols=seq=65"}, kScale).err,
            "hackc-opt: symbol seq: expected 1..64, got 65\n");
  EXPECT_EQ(Opt({"--interp", "--symbols=sec=5"}, kScale).code, kExitUsage);
  EXPECT_EQ(Opt({"--symbols=seq"}, kScale).code, kExitUsage);
  EXPECT_EQ(Opt({"--target=sm_7"}, kScale).code, kExitUsage);
  EXPECT_EQ(Opt({"/nowhere.hir"}).err, "hackc-opt: /nowhere.hir: cannot be read\n");
  EXPECT_EQ(Opt({"--help"}).code, kExitOk);
}

TEST(Opt, ParseErrorsNameTheLineOfTheWholeText) {
  EXPECT_EQ(Opt({}, "").code, kExitWrong);
  EXPECT_THAT(Opt({}, "\nhackc cuda 1\n").err, StartsWith("<stdin>:2:1: expected `hackc LEVEL"));
  const Outcome second = Opt({}, std::string(kScale) + "# the second\nhackc loop 1\nfn 7\n");
  EXPECT_EQ(second.code, kExitWrong);
  EXPECT_THAT(second.err, StartsWith("<stdin>:14:4: expected "));
  EXPECT_EQ(Opt({}, std::string(kScale) + "hackc tile 1\n").code, kExitWrong);
}

TEST(Opt, VerifierErrorsSayWhen) {
  std::string text = kScale;
  text.replace(text.find("%c] ="), 2, "9");
  const Outcome outcome = Opt({"--verify"}, text);
  EXPECT_EQ(outcome.code, kExitWrong);
  EXPECT_THAT(outcome.err, StartsWith("<stdin>:8: loop scale / "));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Opt({"--interp"}, text).code, kExitWrong);  // it cannot be run
  EXPECT_EQ(Opt({}, text).code, kExitOk);               // to look at it nobody has to
}

TEST(Opt, AScheduleThatDoesNotFitIsAWrongText) {
  std::string tile = Opt({"--passes=choose_schedule"}, kScale).out;
  EXPECT_EQ(Opt({"--emit=kernel", "--verify"}, tile).code, kExitOk);
  tile.replace(tile.find("stages = []"), 11, "stages = [{buffer = @y, axis = %s}]");
  for (const char* passes : {"--emit=kernel", "--passes=split_axes"}) {
    const Outcome outcome = Opt({passes}, tile);
    EXPECT_EQ(outcome.code, kExitWrong);
    EXPECT_EQ(outcome.err,
              "hackc-opt: scale: schedule: stage of @y along %s, expected a loop and a buffer that "
              "nothing is written to\n");
  }
}

TEST(Opt, APassThatBreaksOffIsAnInternalError) {
  const Outcome outcome = Opt({"--passes=distribute"}, kScale);
  EXPECT_EQ(outcome.code, kExitInternal);
  EXPECT_THAT(outcome.err, StartsWith("hackc-opt: pass distribute: kernel scale: "));
}

// From every level's text to every later one, each step verified.
TEST(Opt, FromAnyLevelToAnyLaterOne) {
  const std::vector<std::string> levels = {"graph", "tensor", "loop", "tile", "kernel", "cuda"};
  std::string text = ir::kEveryGraphOp;
  for (size_t from = 0; from + 1 < levels.size(); ++from) {
    std::string next;
    for (size_t to = from; to < levels.size(); ++to) {
      SCOPED_TRACE(levels[from] + " to " + levels[to]);
      const Outcome made = Opt({"--emit=" + levels[to], "--verify", "-"}, text);
      ASSERT_EQ(made.code, kExitOk) << made.err;
      EXPECT_THAT(made.out, HasSubstr(to == 5 ? "__global__" : "hackc " + levels[to] + " 1\n"));
      if (to == from + 1) next = made.out;
    }
    for (size_t to = 0; to < from; ++to) {
      EXPECT_EQ(Opt({"--emit=" + levels[to]}, text).code, kExitUsage) << levels[to];
    }
    text = next;
  }
}

TEST(Opt, FilesAndStandardInputAreNamedInMessages) {
  const std::string path = absl::StrCat(testing::TempDir(), "/scale.", getpid(), ".hir");
  std::string text = kScale;
  text.replace(text.find("seq, 8]"), 3, "sec");
  std::ofstream(path) << text;
  EXPECT_THAT(Opt({path}).err, StartsWith(path + ":4:"));
  EXPECT_THAT(Opt({"-"}, text).err, StartsWith("<stdin>:4:"));
  EXPECT_EQ(Opt({path}).code, kExitWrong);
  std::filesystem::remove(path);
}

TEST(Opt, SeedAndTargetReachWhatTheyAreFor) {
  EXPECT_THAT(Opt({"--interp", "--seed", "9"}, kScale).err, HasSubstr("at seed 9 seq=5\n"));
  EXPECT_EQ(Opt({"--seed", "x"}, kScale).code, kExitUsage);
  // 100 KiB of shared memory fit on sm_90a and not on sm_120a.
  const std::string kernel = R"(hackc kernel 1
fn big "keeps a lot" {
  write @y: f32[1]
  launch {grid = [1, 1, 1], threads = 32, cluster = 1, min_blocks_per_sm = 1}
  alloc @s: f32 shared[30000]
  @s[0] = 1.0 when (thread.x == 0)
  @y[0] = @s[0] when (thread.x == 0)
}
)";
  const Outcome large = Opt({"--verify", "--target", "sm_90a"}, kernel);
  EXPECT_EQ(large.code, kExitOk) << large.err;
  const Outcome small = Opt({"--verify", "--target", "sm_120a"}, kernel);
  EXPECT_EQ(small.code, kExitWrong);
  EXPECT_THAT(small.err, HasSubstr("shared"));
}

TEST(Opt, ADifferenceAndAnErrorAfterAPassHaveTheirCode) {
  const std::string race = R"(hackc kernel 1
fn race "two threads, one element" {
  write @y: f32[1]
  launch {grid = [1, 1, 1], threads = 32, cluster = 1, min_blocks_per_sm = 1}
  @y[0] = 1.0
}
)";
  const Outcome outcome = Opt({"--interp"}, race);
  EXPECT_EQ(outcome.code, kExitWrong);
  EXPECT_THAT(outcome.err, HasSubstr("race: second write by thread 1"));
}

TEST(Opt, WhatIsInterpretedIsVerifiedFirst) {
  const std::string kernel = R"(hackc kernel 1
fn f "" {
  write @y: f32[64]
  launch {grid = [1, 1, 1], threads = 64}
  async_wait {pending = -1}
  @y[thread.x] = 1.0
}
)";
  const Outcome interpreted = Opt({"--interp"}, kernel), verified = Opt({"--verify"}, kernel);
  EXPECT_EQ(interpreted.code, kExitWrong);
  EXPECT_THAT(interpreted.err, StartsWith("<stdin>:5: kernel f / async_wait: "));
  EXPECT_EQ(interpreted.err, verified.err);
}

TEST(Opt, AReplayFileVerifiesAndEmits) {
  const Outcome kernel = Opt({"--emit=kernel"}, kScale);
  const Outcome cuda = Opt({}, "# pass: emit_cuda  verify: yes  target: sm_90a\n" + kernel.out);
  EXPECT_EQ(cuda.code, kExitOk) << cuda.err;
  EXPECT_THAT(cuda.out, HasSubstr("__global__"));
  std::string text = kScale;
  text.replace(text.find("%c] ="), 2, "9");
  EXPECT_EQ(Opt({}, "# pass: none  verify: yes\n" + text).code, kExitWrong);
}

TEST(Opt, ListsThePassesOfBothTables) {
  const std::string list = Opt({"--list-passes"}).out;
  EXPECT_THAT(list, StartsWith("fuse_projections    graph -> graph\n"));
  EXPECT_THAT(list, HasSubstr("choose_schedule     loop -> tile\n"));
  EXPECT_THAT(list, HasSubstr("insert_barriers     kernel -> kernel\n"));
}

TEST(RandomRun, DifferencesAreSeen) {
  const auto results = [](std::vector<double> values) {
    interp::TensorData data = interp::TensorData::Zeros(ir::DType::kF32, {2});
    data.values = std::move(values);
    return Results{{"%y", data}};
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(*LargestDifference(results({4, 1}), results({4, 1})), 0);
  EXPECT_EQ(*LargestDifference(results({4, 1}), results({4, 2})), 0.25);
  EXPECT_EQ(*LargestDifference(results({4, kNan}), results({4, kNan})), 0);
  EXPECT_EQ(*LargestDifference(results({4, 1}), results({4, kNan})), kInfinity);
  EXPECT_EQ(*LargestDifference(results({kInfinity, 1}), results({4, 1})), kInfinity);
  EXPECT_FALSE(LargestDifference(results({4, 1}), {}).ok());
}

TEST(RandomRun, DataDependsOnTheSeed) {
  auto unit = Parse(kScale);
  ASSERT_TRUE(unit.ok());
  auto one = Interpret(*unit, {{{"seq", 5}}, 1}), two = Interpret(*unit, {{{"seq", 5}}, 2});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_GT(*LargestDifference(*one, *two), 0.1);
}

}  // namespace
}  // namespace hackc::opt

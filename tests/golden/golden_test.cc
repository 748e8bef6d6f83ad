// SPDX-License-Identifier: MIT
// Each file tests/golden/LEVEL/PASS/CASE.hir is one test (tools/opt/case_file.h says what is in
// it): the pass makes exactly the expected text, which verifies and round-trips, and both sides
// give the same on the same random data. HACKC_BLESS=1 writes what was made in place of what was
// expected.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "compiler/passes/pipeline.h"
#include "compiler/support/cat.h"
#include "tools/opt/case_file.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"

namespace hackc::opt {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

// The tree that this was built from, or $HACKC_SOURCE_DIR: a copy of it with other cases.
fs::path Root() {
  const char* other = std::getenv("HACKC_SOURCE_DIR");
  return other != nullptr ? other : HACKC_SOURCE_DIR;
}

const fs::path& Folder() {
  static const auto* folder = new fs::path(Root() / "tests/golden");
  return *folder;
}

// "tile/split_axes/rows.hir", sorted.
std::vector<std::string> CasePaths() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(Folder())) {
    if (entry.path().extension() != ".hir") continue;
    paths.push_back(fs::relative(entry.path(), Folder()).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string WithoutComments(const std::string& text) {
  std::string out;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.empty() || line[0] != '#') out += line + "\n";
  }
  if (!out.empty()) out.pop_back();  // the text's own end of line was split off as an empty line
  return out;
}

// The lines from the first to the last difference, with three lines round them.
std::string Diff(const std::string& expected, const std::string& got) {
  const std::vector<std::string> a = absl::StrSplit(expected, '\n'), b = absl::StrSplit(got, '\n');
  const size_t shorter = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const size_t first = head < 3 ? 0 : head - 3, after = std::min<size_t>(tail, 3);
  std::string text = Cat("@@ line ", first + 1, " @@\n");
  for (size_t i = first; i < head; ++i) text += "  " + a[i] + "\n";
  for (size_t i = head; i < a.size() - tail; ++i) text += "- " + a[i] + "\n";
  for (size_t i = head; i < b.size() - tail; ++i) text += "+ " + b[i] + "\n";
  for (size_t i = a.size() - tail; i < a.size() - tail + after; ++i) text += "  " + a[i] + "\n";
  return text;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Case) {
  const fs::path path = Folder() / GetParam();
  const auto file = ReadCase(ReadAll(path));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string pass = path.parent_path().filename();
  // Launches of a module have no text: passes over them start from Tensor IR, with the pass that
  // makes them.
  ASSERT_FALSE(file->passes.empty());
  ASSERT_EQ(file->passes.back(), pass) << "the folder is the pass's name";
  const auto target = schedule::FindTarget(file->target);
  ASSERT_TRUE(target.ok()) << target.status();

  const auto input = Parse(file->input);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_THAT(Verify(*input, schedule::LimitsOf(*target)), IsEmpty());
  auto output = input;
  for (const std::string& each : file->passes) {
    output = RunPass(each, *output, *target);
    ASSERT_TRUE(output.ok()) << output.status();
  }
  EXPECT_THAT(Verify(*output, schedule::LimitsOf(*target)), IsEmpty());

  const std::string made = Print(*output);
  if (std::getenv("HACKC_BLESS") != nullptr && made != file->expected) {
    std::ofstream(path) << file->input << kExpectedLine << made;
  } else {
    EXPECT_TRUE(made == file->expected)
        << Diff(file->expected, made) << "To accept: HACKC_BLESS=1 build/tests/golden_test "
        << "--gtest_filter='*" << testing::UnitTest::GetInstance()->current_test_info()->name()
        << "'";
    const auto again = Parse(file->expected);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Print(*again), WithoutComments(file->expected));
  }

  // A pass that goes from one level to the same and leaves a case alone gives it back; split_axes
  // alone always has to say how a loop runs.
  if (file->kind == "leaves" && file->passes.size() == 1 && pass != "split_axes" &&
      LevelOf(*input) == LevelOf(*output)) {
    EXPECT_EQ(WithoutComments(file->input), made);
  }

  RandomRun run;
  run.seed = file->seed;
  const auto symbols = CompleteSymbols(*input, file->symbols);
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  run.symbols = *symbols;
  run.barriers_may_lack = true;
  const auto before = Interpret(*input, run);
  ASSERT_TRUE(before.ok()) << before.status();
  run.barriers_may_lack = pass != "insert_barriers";
  const auto after = Interpret(*output, run);
  ASSERT_TRUE(after.ok()) << after.status();
  for (const auto& [name, data] : *before) {
    // A result of nothing but zeros or NaN would agree with much.
    EXPECT_TRUE(std::any_of(data.values.begin(), data.values.end(), [](double value) {
      return std::isfinite(value) && value != 0;
    })) << name;
    EXPECT_TRUE(std::none_of(data.values.begin(), data.values.end(), [](double value) {
      return std::isnan(value);
    })) << name;
  }
  const auto difference = LargestDifference(*before, *after);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_LE(*difference, kExactTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(CasePaths()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// What a case starts from and what it expects are both lowered to kernels, which verify after every
// pass and give the same: a pass proves little by what it leaves if none after it can take that.
TEST_P(Golden, DownToKernels) {
  const auto file = ReadCase(ReadAll(Folder() / GetParam()));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto target = schedule::FindTarget(file->target);
  ASSERT_TRUE(target.ok()) << target.status();
  for (const std::string& text : {file->input, file->expected}) {
    const auto unit = Parse(text);
    ASSERT_TRUE(unit.ok()) << unit.status();
    if (LevelOf(*unit) == Level::kKernel) continue;
    auto lowered = unit;
    for (const std::string& pass : DefaultPasses(*unit, Level::kKernel)) {
      SCOPED_TRACE("pass " + pass);
      lowered = RunPass(pass, *lowered, *target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      ASSERT_THAT(Verify(*lowered, schedule::LimitsOf(*target)), IsEmpty()) << Print(*lowered);
    }
    ASSERT_EQ(LevelOf(*lowered), Level::kKernel);
    const auto symbols = CompleteSymbols(*unit, file->symbols);
    ASSERT_TRUE(symbols.ok()) << symbols.status();
    const RandomRun run{.symbols = *symbols, .seed = file->seed};
    const auto before = Interpret(*unit, run), after = Interpret(*lowered, run);
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(after.ok()) << after.status() << "\n" << Print(*lowered);
    const auto difference = LargestDifference(*before, *after);
    ASSERT_TRUE(difference.ok()) << difference.status();
    EXPECT_LE(*difference, kExactTolerance) << Print(*lowered);
  }
}

// The folder of compiler/passes/ that holds the pass.
std::string LevelFolder(const std::string& pass) {
  for (std::string_view level : ir::kNamesOf<Level>) {
    if (fs::exists(Root() / "compiler/passes" / level / (pass + ".cc"))) {
      return std::string(level);
    }
  }
  return "(none)";
}

TEST(GoldenCases, EveryPassHasSomeAndEachFolderIsAPass) {
  std::set<std::string> folders, wanted;
  for (const std::string& path : CasePaths()) folders.insert(path.substr(0, path.rfind('/')));
  for (const auto& pass : passes::ModulePasses()) wanted.emplace(pass.name);
  for (const auto& pass : passes::KernelPasses()) wanted.emplace(pass.name);
  std::set<std::string> expected;
  for (const std::string& pass : wanted) expected.insert(LevelFolder(pass) + "/" + pass);
  EXPECT_EQ(folders, expected);
}

TEST(GoldenCases, EveryPassHasAllKinds) {
  std::map<std::string, std::set<std::string>> kinds;
  for (const std::string& path : CasePaths()) {
    const auto file = ReadCase(ReadAll(Folder() / path));
    ASSERT_TRUE(file.ok()) << path << ": " << file.status();
    kinds[path.substr(0, path.rfind('/'))].insert(file->kind);
  }
  for (const auto& [pass, found] : kinds) {
    EXPECT_THAT(found, testing::ElementsAre("does", "edge", "leaves")) << pass;
  }
}

TEST(GoldenCases, ADifferenceIsShownWithItsSurroundings) {
  EXPECT_EQ(Diff("a\nb\nc\nd\ne\n", "a\nb\nc\nD\ne\n"),
            "@@ line 1 @@\n  a\n  b\n  c\n- d\n+ D\n  e\n  \n");
  EXPECT_EQ(Diff("a\n", "a\nb\n"), "@@ line 1 @@\n  a\n+ b\n  \n");
}

}  // namespace
}  // namespace hackc::opt

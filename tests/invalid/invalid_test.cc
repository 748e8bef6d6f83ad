// SPDX-License-Identifier: MIT
// Each file tests/invalid/LEVEL/RULE[-CASE].hir breaks one rule of a verifier, on the lines that
// say so:
//
//   @y[0] = 1.0  # expected-error: S9: index rank 1, buffer rank 2
//
// The verifier must report that rule there, and nothing else. What the parser refuses already says
// `# expected-parse-error: MESSAGE`. Every rule has a file, and every file a rule.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "absl/strings/str_split.h"
#include "compiler/ir/graph_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/module_verify.h"
#include "compiler/ir/stmt_verify.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/support/cat.h"
#include "tools/opt/unit.h"

namespace hackc::opt {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

struct Table {
  std::string header;  // under compiler/ir
  std::span<const ir::Rule> rules;
  std::set<std::string> levels;
};

const std::vector<Table>& Tables() {
  static const auto* tables = new std::vector<Table>{
      {"module_verify.h", ir::kModuleRules, {"graph", "tensor"}},
      {"graph_verify.h", ir::kGraphRules, {"graph"}},
      {"tensor_verify.h", ir::kTensorRules, {"tensor"}},
      {"stmt_verify.h", ir::kStmtRules, {"loop", "tile", "kernel"}},
      {"loop_verify.h", ir::kLoopRules, {"loop"}},
      {"tile_verify.h", ir::kTileRules, {"tile"}},
      {"kernel_verify.h", ir::kKernelRules, {"kernel"}},
  };
  return *tables;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "kernel/K7-width.hir", sorted.
std::vector<std::string> CasePaths() {
  const fs::path folder = fs::path(HACKC_SOURCE_DIR) / "tests/invalid";
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".hir") continue;
    paths.push_back(fs::relative(entry.path(), folder).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string LevelOf(const std::string& path) { return path.substr(0, path.find('/')); }
std::string RuleOf(const std::string& path) {
  const std::string stem = fs::path(path).stem();
  return stem.substr(0, stem.find('-'));
}

// What follows `mark` on each line that has it.
std::map<int, std::string> Expected(const std::string& text, const std::string& mark) {
  std::map<int, std::string> expected;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    if (const size_t at = line.find(mark); at != line.npos) {
      expected[number] = line.substr(at + mark.size());
    }
  }
  return expected;
}

void CheckCase(const std::string& path) {
  const std::string text = ReadAll(fs::path(HACKC_SOURCE_DIR) / "tests/invalid" / path);
  const std::map<int, std::string> refused = Expected(text, "# expected-parse-error: ");
  std::map<int, std::string> expected = Expected(text, "# expected-error: ");
  ASSERT_NE(refused.empty(), expected.empty()) << "expects nothing, or both kinds of errors";
  const absl::StatusOr<Unit> unit = Parse(text);
  if (!refused.empty()) {
    ASSERT_EQ(refused.size(), 1) << "the parser stops at the first error";
    const auto& [line, message] = *refused.begin();
    EXPECT_THAT(
        std::string(unit.status().message()),
        testing::AllOf(testing::StartsWith(Cat("line ", line, ", ")), testing::HasSubstr(message)));
    return;
  }
  ASSERT_TRUE(unit.ok()) << unit.status();
  EXPECT_EQ(Name(opt::LevelOf(*unit)), LevelOf(path));
  for (const std::string& error : Verify(*unit, {})) {
    const auto hit = std::find_if(expected.begin(), expected.end(), [&](const auto& entry) {
      const std::string& wanted = entry.second;  // "S9: index rank"
      const std::string rule = wanted.substr(0, wanted.find(": "));
      EXPECT_EQ(rule, RuleOf(path)) << "another rule than the file's";
      return error.starts_with(Cat("line ", entry.first, ": ")) &&
             error.find(Cat(" [", rule, " ")) != error.npos &&
             error.find(wanted.substr(rule.size() + 2)) != error.npos;
    });
    if (hit == expected.end()) {
      ADD_FAILURE() << "not expected: " << error;
    } else {
      expected.erase(hit);
    }
  }
  for (const auto& [line, message] : expected) {
    ADD_FAILURE() << "line " << line << " was expected to break " << message;
  }
}

TEST(InvalidFiles, AreRefusedByTheirRuleAtItsLine) {
  for (const std::string& path : CasePaths()) {
    SCOPED_TRACE(path);
    CheckCase(path);
  }
}

TEST(InvalidFiles, EveryRuleHasAFileAndEveryFileARule) {
  std::set<std::string> missing, unknown;
  const std::vector<std::string> paths = CasePaths();
  unknown.insert(paths.begin(), paths.end());
  for (const Table& table : Tables()) {
    for (const ir::Rule& rule : table.rules) {
      bool found = false;
      for (const std::string& path : paths) {
        if (RuleOf(path) != rule.Id() || !table.levels.contains(LevelOf(path))) continue;
        found = true;
        unknown.erase(path);
      }
      if (!found) missing.insert(Cat(rule.Id(), " ", rule.name));
    }
  }
  EXPECT_THAT(missing, IsEmpty()) << "rules without a file that breaks them";
  EXPECT_THAT(unknown, IsEmpty()) << "files that name no rule of their level";
}

TEST(InvalidFiles, HeadersOpenWithTheRulesOfTheirTables) {
  for (const Table& table : Tables()) {
    const std::string text = ReadAll(fs::path(HACKC_SOURCE_DIR) / "compiler/ir" / table.header);
    std::vector<std::string> listed, expected;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() < 4 || words[0] != "//" || words[1][0] != table.rules[0].level) continue;
      if (words[1].find_first_not_of("0123456789", 1) != std::string::npos) continue;
      listed.push_back(words[1] + " " + words[2]);
    }
    for (const ir::Rule& rule : table.rules) expected.push_back(Cat(rule.Id(), " ", rule.name));
    EXPECT_EQ(listed, expected) << table.header;
  }
}

}  // namespace
}  // namespace hackc::opt

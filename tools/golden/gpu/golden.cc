// SPDX-License-Identifier: MIT
#include "tools/golden/gpu/golden.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "compiler/support/cat.h"
#include "tools/golden/check.h"
#include "tools/golden/gpu/gpu_check.h"
#include "tools/golden/model.h"

namespace hackc::golden {
namespace {

namespace fs = std::filesystem;

template <size_t kCount>
std::vector<std::string> Words(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}
template <typename Enum, size_t kCount>
Enum FromName(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

// The folder itself, or the golden models in it.
std::vector<fs::path> ModelFolders(const fs::path& given) {
  std::error_code ignored;
  if (fs::exists(given / "config.json", ignored)) return {given};
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(given, ignored)) {
    if (fs::exists(entry.path() / "config.json", ignored)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) folders.push_back(given);  // fails with what is missing in it
  return folders;
}

// Which numbers a level is checked in where none are asked for.
std::vector<CheckedDType> DTypesOf(CheckedLevel level) {
  switch (level) {
    case CheckedLevel::kKernel:
      return {CheckedDType::kFloat64, CheckedDType::kFloat32, CheckedDType::kBFloat16};
    case CheckedLevel::kGpu: return {CheckedDType::kFloat32, CheckedDType::kBFloat16};
    default: return {CheckedDType::kFloat64};
  }
}

std::string Line(const std::string& name, std::string_view level, std::string_view dtype,
                 const Outcome& outcome) {
  std::ostringstream line;
  line << std::left << std::setw(20) << name << " " << std::setw(6) << level << " " << std::setw(8)
       << dtype << "  ";
  if (outcome.problem.empty()) {
    line << std::scientific << std::setprecision(2) << "error " << outcome.error << "  bound "
         << outcome.bound << "  " << (outcome.ok() ? "ok" : "FAILED");
  } else {
    line << "FAILED: " << outcome.problem;
  }
  return line.str();
}

}  // namespace

int RunGolden(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Runs golden models (config.json, model.safetensors, expected.safetensors) through every "
      "level of the compiler and compares with their true outputs.",
      "hackc-golden");
  app.footer("Exit codes: 0 all is right, 1 a check failed, 2 usage.");
  std::vector<std::string> directories, levels, dtypes;
  app.add_option("DIR", directories, "Golden models, or folders of them")->required();
  app.add_option("--level", levels, "Only these levels (all; gpu where there is one)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(Words(kCheckedLevelNames)));
  app.add_option("--dtype", dtypes,
                 "Only in these; float64 never rounds (graph, tensor, loop, tile: float64; kernel: "
                 "float64,float32,bfloat16; gpu: float32,bfloat16)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(Words(kCheckedDTypeNames)));
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : 2;
  }
  const absl::StatusOr<const client::CudaDriver*> driver = client::LoadCudaDriver();
  if (levels.empty()) {
    levels = Words(kCheckedLevelNames);
    if (!driver.ok()) {
      err << "hackc-golden: level gpu is not checked: " << driver.status().message() << std::endl;
      levels.pop_back();
    }
  }
  bool failed = false;
  const auto tell = [&](const std::string& name, std::string_view level, std::string_view dtype,
                        const Outcome& outcome) {
    failed |= !outcome.ok();
    out << Line(name, level, dtype, outcome) << std::endl;
  };
  std::vector<fs::path> folders;
  for (const std::string& given : directories) {
    for (fs::path& folder : ModelFolders(given)) folders.push_back(std::move(folder));
  }
  for (const fs::path& folder : folders) {
    const absl::StatusOr<Model> model = ReadModel(folder);
    const absl::Status known =
        model.ok() ? PlanFor(*model, program::DType::kFloat32).status() : model.status();
    if (!known.ok()) {
      tell((folder / "").parent_path().filename().string(), "-", "-",
           {.problem = std::string(known.message())});
      continue;
    }
    for (const std::string& level_name : levels) {
      const auto level = FromName<CheckedLevel>(kCheckedLevelNames, level_name);
      std::vector<CheckedDType> wanted = DTypesOf(level);
      if (!dtypes.empty()) wanted.clear();
      for (const std::string& dtype : dtypes) {
        wanted.push_back(FromName<CheckedDType>(kCheckedDTypeNames, dtype));
      }
      for (CheckedDType dtype : wanted) {
        Outcome outcome;
        if (level != CheckedLevel::kGpu) {
          outcome = CheckLevel(*model, level, dtype);
        } else if (dtype == CheckedDType::kFloat64) {
          outcome.problem = "float64 is no dtype of storage";
        } else if (!driver.ok()) {
          outcome.problem = std::string(driver.status().message());
        } else {
          outcome = CheckOnGpu(**driver, folder, *model, dtype);
        }
        tell(model->name, level_name, kCheckedDTypeNames[static_cast<size_t>(dtype)], outcome);
      }
    }
  }
  return failed ? 1 : 0;
}

}  // namespace hackc::golden

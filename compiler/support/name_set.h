// SPDX-License-Identifier: MIT
// Gives out names that are unique: k, k2, k3.
//
//   NameSet names;
//   names.Add("k");
//   names.Unique("k") == "k2"
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hackc {

class NameSet {
 public:
  // A name's second user gets it with `separator` and the number `second`.
  explicit NameSet(std::string separator = "", int second = 2)
      : separator_(std::move(separator)), second_(second) {}

  bool Add(std::string_view name) { return used_.emplace(name).second; }  // false: taken already
  std::string Unique(const std::string& base) {
    std::string name = base;
    for (int i = second_; !Add(name); ++i) name = base + separator_ + std::to_string(i);
    return name;
  }

 private:
  std::string separator_;
  int second_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace hackc

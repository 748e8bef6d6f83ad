// SPDX-License-Identifier: MIT
// Questions to containers without iterators.
//
//   if (const ValueType* type = FindOrNull(types, name)) Use(*type);
//   return FindOr(lets, name);                       // the value, or a default one
//   return FindBy(maps, &BulkMap::name, name);       // of a list, or null
//
// Thread safety: pure functions.
#pragma once

#include <functional>

#include "absl/algorithm/container.h"

namespace hackc {

template <typename Map>
concept LookupMap = requires {
  typename Map::mapped_type;
};

// The value of `key`, which lives in the map; null where there is none.
template <LookupMap Map, typename Key>
auto FindOrNull(Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// A copy of the value of `key`, or `otherwise`.
template <LookupMap Map, typename Key>
typename Map::mapped_type FindOr(const Map& map, const Key& key,
                                 typename Map::mapped_type otherwise = {}) {
  const auto found = map.find(key);
  return found == map.end() ? otherwise : found->second;
}

// The first item whose member `of` is `value`; null where there is none.
auto FindBy(auto& items, auto of, const auto& value) -> decltype(&*items.begin()) {
  for (auto& item : items) {
    if (std::invoke(of, item) == value) return &item;
  }
  return nullptr;
}

}  // namespace hackc

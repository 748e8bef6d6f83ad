// SPDX-License-Identifier: MIT
// Nodes that name their fields once. Equality, hash, child mapping, printing and parsing are loops
// over that list, so that a new node needs one line and works everywhere.
//
//   struct Combine { std::string name; Monoid monoid; int thread_mask; };
//   HACKC_FIELDS(Combine, "combine", name, monoid, thread_mask)
//   ForEachField<Combine>([&](const auto& field) { Use(field.name, node.*field.member); });
//
// HACKC_FIELDS stands in the namespace of its type. Enumerations spell their values with
//   HACKC_ENUM_NAMES(AxisRole, "free", "reduce", "contract")
//   Name(AxisRole::kReduce) == "reduce";  FromName<AxisRole>("reduce") == AxisRole::kReduce
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/support/lookup.h"

namespace hackc::ir {

template <typename Class, typename Member>
struct Field {
  std::string_view name;
  Member Class::*member;
};

// The fields of `T`, in their order of declaration.
template <typename T, typename Visit>
constexpr void ForEachField(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); },
             FieldsOf(static_cast<const T*>(nullptr)));
}

// The word that stands for `T` in text.
template <typename T>
constexpr std::string_view NodeName() {
  return NodeNameOf(static_cast<const T*>(nullptr));
}

template <typename Enum>
concept NamedEnum = requires(Enum value) {
  EnumNames(value).size();
};

template <NamedEnum Enum>
inline constexpr auto kNamesOf = EnumNames(Enum());

template <NamedEnum Enum>
constexpr std::string_view Name(Enum value) {
  return kNamesOf<Enum>[static_cast<size_t>(value)];
}

template <NamedEnum Enum>
constexpr std::optional<Enum> FromName(std::string_view name) {
  const auto found = std::find(kNamesOf<Enum>.begin(), kNamesOf<Enum>.end(), name);
  if (found == kNamesOf<Enum>.end()) return std::nullopt;
  return static_cast<Enum>(found - kNamesOf<Enum>.begin());
}

template <typename T>
concept NodeWithFields = requires(const T* node) {
  FieldsOf(node);
};

// Equality of nodes field by field. A type for which == says something else has a SameValue of its
// own.
inline bool SameValue(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }
template <typename T>
bool SameValue(const T& a, const T& b) {
  if constexpr (NodeWithFields<T>) {
    bool same = true;
    ForEachField<T>(
        [&](const auto& field) { same = same && SameValue(a.*field.member, b.*field.member); });
    return same;
  } else {
    return a == b;
  }
}
template <typename T>
bool SameValue(const std::vector<T>& a, const std::vector<T>& b) {
  return absl::c_equal(a, b, [](const T& x, const T& y) { return SameValue(x, y); });
}
template <typename... Kinds>
bool SameValue(const std::variant<Kinds...>& a, const std::variant<Kinds...>& b) {
  return a.index() == b.index() &&
         std::visit([&]<typename T>(const T& x) { return SameValue(x, std::get<T>(b)); }, a);
}

// Calls `visit` where `node` is of the kind, or one of the kinds, that it takes; a default result
// elsewhere.
template <typename Result = void, typename Visit, typename... Kinds>
Result VisitKind(const std::variant<Kinds...>& node, Visit& visit) {
  static_assert((std::is_invocable_v<Visit&, const Kinds&> || ...), "takes no kind of node");
  return std::visit(
      [&]<typename T>(const T& n) -> Result {
        if constexpr (std::is_invocable_v<Visit&, const T&>) {
          return visit(n);
        } else {
          return Result();
        }
      },
      node);
}

// Whether the node behind `handle` is of one of the kinds.
template <typename... Kinds>
bool IsA(const auto& handle) {
  return (std::holds_alternative<Kinds>(handle->node) || ...);
}

// Calls `visit` on the handle of a node, or on the node if it takes a kind.
template <typename Handle, typename Visit>
void VisitHandle(const Handle& handle, Visit& visit) {
  if constexpr (std::is_invocable_v<Visit&, const Handle&>) {
    visit(handle);
  } else {
    VisitKind(handle->node, visit);
  }
}

}  // namespace hackc::ir

// Applies a macro to each argument; __VA_OPT__ recursion, up to 64 arguments.
#define HACKC_PARENS_ ()
#define HACKC_EXPAND_(...) \
  HACKC_EXPAND1_(HACKC_EXPAND1_(HACKC_EXPAND1_(HACKC_EXPAND1_(__VA_ARGS__))))
#define HACKC_EXPAND1_(...) \
  HACKC_EXPAND2_(HACKC_EXPAND2_(HACKC_EXPAND2_(HACKC_EXPAND2_(__VA_ARGS__))))
#define HACKC_EXPAND2_(...) __VA_ARGS__
#define HACKC_EACH_(type, head, ...)              \
  ::hackc::ir::Field<type, decltype(type::head)>{ \
      #head, &type::head} __VA_OPT__(, HACKC_EACH_AGAIN_ HACKC_PARENS_(type, __VA_ARGS__))
#define HACKC_EACH_AGAIN_() HACKC_EACH_

#define HACKC_FIELDS(type, word, ...)                                                  \
  constexpr auto FieldsOf(const type*) {                                               \
    return std::make_tuple(__VA_OPT__(HACKC_EXPAND_(HACKC_EACH_(type, __VA_ARGS__)))); \
  }                                                                                    \
  constexpr std::string_view NodeNameOf(const type*) { return word; }

#define HACKC_ENUM_NAMES(type, ...) \
  constexpr auto EnumNames(type) { return std::to_array<std::string_view>({__VA_ARGS__}); }

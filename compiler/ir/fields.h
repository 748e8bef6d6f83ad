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
#pragma once

#include <array>
#include <string_view>
#include <tuple>

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
constexpr std::string_view EnumName(Enum value) {
  return EnumNames(value)[static_cast<size_t>(value)];
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

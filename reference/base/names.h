// Names of an enumeration's values: one table next to each named enumeration, from which everything else follows.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace attest {

/// The names of E's values, which count from 0: a name_table for each named enumeration.
template <class E>
inline constexpr std::nullptr_t kNames = nullptr;

template <class... Text>
constexpr std::array<std::string_view, sizeof...(Text)> name_table(Text... names) {
  return {names...};
}

template <class E>
concept NamedEnum = std::is_enum_v<E> && !std::is_same_v<decltype(kNames<E>), const std::nullptr_t>;

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  return kNames<E>.at(static_cast<std::size_t>(value));
}

/// All values in order.
template <NamedEnum E>
constexpr auto values_of() {
  std::array<E, kNames<E>.size()> values{};
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<E>(n);
  return values;
}

/// All names in order.
template <NamedEnum E>
std::vector<std::string> names_of() {
  return {kNames<E>.begin(), kNames<E>.end()};
}

/// The value with this name, if there is one.
template <NamedEnum E>
constexpr std::optional<E> value_named(std::string_view name) {
  for (const E value : values_of<E>()) {
    if (name_of(value) == name) return value;
  }
  return std::nullopt;
}

}  // namespace attest

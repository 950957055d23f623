// Names of an enumeration's values. Each named enumeration has one table, next to it; everything else follows from
// that.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace attest {

/// The names of E's values, which count from 0. Specialised for each named enumeration.
template <class E>
inline constexpr std::nullptr_t kNames = nullptr;

template <class E>
concept Named = std::is_enum_v<E> && !std::is_same_v<decltype(kNames<E>), const std::nullptr_t>;

template <Named E>
constexpr std::string_view name_of(E value) {
  return kNames<E>.at(static_cast<std::size_t>(value));
}

/// All values in order.
template <Named E>
constexpr auto values_of() {
  std::array<E, kNames<E>.size()> values{};
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<E>(n);
  return values;
}

/// The value with this name, if there is one.
template <Named E>
constexpr std::optional<E> value_named(std::string_view name) {
  for (const E value : values_of<E>()) {
    if (name_of(value) == name) return value;
  }
  return std::nullopt;
}

}  // namespace attest

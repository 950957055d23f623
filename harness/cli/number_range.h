// A number of the command line within limits.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace attest {

/// From `low` to `high`. CLI::Range takes NaN for inside, since it is neither below nor above.
inline CLI::Validator number_range(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return std::string();
    return fmt::format("\"{}\": a number from {:g} to {:g} is wanted", text, low, high);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{:g} - {:g}]", low, high));
}

}  // namespace attest

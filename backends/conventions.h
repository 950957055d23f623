// Conventions: details that libraries define differently, as a backend states them. The harness probes each statement.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace attest {

/// The defaults are attest's own definitions. A backend whose library differs states that here. It translates or
/// refuses what it cannot do.
struct Conventions {
  std::string align = "as asked";         ///< of the causal diagonal when Lq != Lk: as asked, top-left, bottom-right
  std::string window = "W + 1 keys";      ///< that left = W shows: W + 1 keys, W keys
  std::string mask_true = "keep";         ///< in a boolean mask: keep, drop
  std::string empty_row = "0";            ///< output of a row that sees nothing: 0, nan, mean of v
  std::string hidden_nan = "stays out";   ///< NaN in a key that no row sees: stays out, leaks
  std::string lse_base = "e";             ///< e, 2
  std::string lse_of_empty_row = "-inf";  ///< -inf, inf, nan, 0
  std::string softcap = "before bias";    ///< before bias, after bias, refused
  std::string softmax_f64 = "f64";        ///< precision of the softmax of an f64 problem: f64, f32, refused
  std::string accumulation_f32 = "f32";   ///< of the scores of an f32 problem: f32, f64
  /// Relations that keep every bit in every call that is accepted (`attest relate --list`): "repeat, threads, batch".
  std::string same_bits = "no promise";
};

struct ConventionField {
  std::string_view name;
  std::string Conventions::*value;
};

/// All fields in order, for code that lists, sends or probes conventions.
inline constexpr std::array<ConventionField, 11> kConventionFields = {{
    {"align", &Conventions::align},
    {"window", &Conventions::window},
    {"mask_true", &Conventions::mask_true},
    {"empty_row", &Conventions::empty_row},
    {"hidden_nan", &Conventions::hidden_nan},
    {"lse_base", &Conventions::lse_base},
    {"lse_of_empty_row", &Conventions::lse_of_empty_row},
    {"softcap", &Conventions::softcap},
    {"softmax_f64", &Conventions::softmax_f64},
    {"accumulation_f32", &Conventions::accumulation_f32},
    {"same_bits", &Conventions::same_bits},
}};
/// Whether a result may be right by it that is wrong by attest's definition.
constexpr bool changes_results(const ConventionField& field) { return field.value != &Conventions::same_bits; }
static_assert(sizeof(Conventions) == kConventionFields.size() * sizeof(std::string), "a field is not in the table");

}  // namespace attest

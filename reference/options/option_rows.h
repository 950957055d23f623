// Rows of the table of options (options.cpp) that take more than a line. Rows have neither a version nor their features
// here: the table gives them these.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/options/option.h"

namespace attest::option_rows {

using TypeNames = std::span<const std::string_view>;

/// "f64|f32|f16|bf16"
inline std::string alternatives_of(TypeNames names) {
  return joined(
      names, [](std::string_view name) { return std::string(name); }, "|");
}

inline Option composite(std::string key, std::string how, std::string few_words) {
  Option option;
  option.key = std::move(key);
  option.values(std::move(how), std::move(few_words));
  return option;
}

Option align();
Option window();
Option lengths(std::string key, std::optional<LengthSpec> Call::*member, const std::string& what,
               std::string few_words);
Option mask();
Option blocks();
Option select();
Option prefix();
/// One count for all batches, or one for each. Equal counts are one.
Option past();
/// A cap of the scaled scores, or of <q,k>.
Option softcap();
Option rope();
/// Of the angles in the tables, which are data.
Option rope_base();
Option norm();
/// Alone as the kernels have it that know no other eps.
Option l2norm();
/// Those that a tensor may be stored in.
TypeNames types_of(TensorId id);
/// The plainest first.
std::vector<std::string> types_to_try(TensorId id);
/// "token", "block:32"
Option scales_of(TensorId tensor, std::optional<ScaleSpec> Call::*member);
Option type_of_tensor(TensorId tensor);
Option layout_of(TensorId tensor);
Option strides_of(TensorId tensor);
Option offset_of(TensorId tensor);
Option fill();
Option fill_of(TensorId tensor);
/// Of an input of linear attention.
Option fill_of_input(std::string key, std::optional<Fill> TestData::*fill);
Option poison();
Option seed();

}  // namespace attest::option_rows

// A Problem is a call and the data that fill its tensors. Where a call is expected, its call is meant.
//
// Its text form is the case line (reference/options/case_line.h). Everything here is a plain value; two problems are
// equal exactly when their canonical lines are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/call/call.h"

namespace attest {

/// A named generator of data with its numbers: `normal`, `spread(88)`, `band(32)`.
struct Fill {
  std::string name = "normal";
  std::vector<double> args;
  bool operator==(const Fill&) const = default;
};

/// The data of a call. Each element is a function of these members and of its index.
struct TestData {
  Fill fill;
  std::array<std::optional<Fill>, 5> own_fills{};  ///< of q, k, v and do where it is not `fill`
  Fill mask_fill, block_fill;                      ///< of the mask and of `blocks`, where the call has them
  std::optional<Fill> decay_fill{}, beta_fill{}, state_fill{};  ///< of linear attention's inputs; unset: uniform
  Fill select_fill{"distinct", {}};                             ///< of the lists of `select`
  double rope_base = 10000;                                     ///< of the angles in the tables of cosines and sines
  double empty_parts = 0;                                       ///< probability that a row of a part saw nothing
  std::string poison;                                           ///< empty, or "hidden:kv" and the like
  std::uint64_t seed = 0;

  bool operator==(const TestData&) const = default;

  /// Where q, k, v or do has its own fill; results that are merged have none.
  static constexpr std::size_t place_of_fill(TensorId id) {
    return id == TensorId::dout ? 3 : id == TensorId::part_o ? 4 : static_cast<std::size_t>(id);
  }
  std::optional<Fill>& own_fill(TensorId id) { return own_fills[place_of_fill(id)]; }
  const std::optional<Fill>& own_fill(TensorId id) const { return own_fills[place_of_fill(id)]; }
  /// The fill of q, k, v, do or results that are merged.
  const Fill& fill_of(TensorId id) const { return own_fill(id) ? *own_fill(id) : fill; }
};

struct Problem {
  Call call;
  TestData data;

  bool operator==(const Problem&) const = default;
  operator const Call&() const { return call; }  // NOLINT(google-explicit-constructor): by design
  operator Call&() { return call; }              // NOLINT(google-explicit-constructor): by design

  /// The seed of the data, and of dropout where the call has it.
  void set_seed(std::uint64_t seed) {
    data.seed = seed;
    call.dropout_seed = call.dropout > 0 ? seed : 0;
  }
};

}  // namespace attest

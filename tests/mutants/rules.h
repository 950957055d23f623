// How others decide whether a result is right: tolerances to hold against the derived bound.
//
// Each is applied to all elements of one output tensor, NaN and infinity counting as equal to themselves.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reference/base/types.h"

namespace attest::mutants {

/// One output tensor of one case. `baseline` is what the plain correct kernel gave.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<double> got, expected, baseline;
};

struct Rule {
  std::string_view name, source;
  bool (*accepts)(const Tensor&);
};

std::span<const Rule> rules();

}  // namespace attest::mutants

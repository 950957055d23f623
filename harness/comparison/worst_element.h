// The element that lies furthest off.
#pragma once

#include <string>
#include <string_view>

#include "reference/base/types.h"

namespace attest {

struct WorstElement {
  std::string output;  ///< "o", "lse", or a stage of a walkthrough
  Index4 index{};
  double got = 0, expected = 0, bound = 0;
};

/// What the third index of an output, or of a stage, counts.
std::string_view row_word(std::string_view output);
/// "o[0,1,3,2]", and of a result that keys number "present_k[0,1,key 3,2]".
std::string place_text(std::string_view output, const Index4& index);

}  // namespace attest

// The element that lies furthest off.
#pragma once

#include <string>

#include "reference/base/types.h"

namespace attest {

struct WorstElement {
  std::string output;  ///< "o", "lse", or a stage of a walkthrough
  Index4 index{};
  double got = 0, expected = 0, bound = 0;
};

}  // namespace attest

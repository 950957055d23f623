// A backend that can't be had here, and why.
#pragma once

#include <string>

namespace attest {

struct Unavailable {
  std::string name, reason;
};

}  // namespace attest

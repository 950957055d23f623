// For tests of what a user is told: the one line, or none.
#pragma once

#include <string>

#include "harness/base/user_error.h"

namespace attest {

/// What call() says against what it was given; "" where it takes it.
template <class Error = UserError>
std::string complaint(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace attest

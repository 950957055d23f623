// A request that can't be carried out. One line: what, where, what to do. The program ends with exit code 2.
#pragma once

#include <stdexcept>

namespace attest {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attest

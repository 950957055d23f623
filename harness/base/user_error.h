// A request that can't be carried out. One line: what, where, what to do. The program ends with exit code 2.
#pragma once

#include <stdexcept>

namespace attest {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Met while a backend works: what it needs isn't on this machine, or what the user said of it can't be. It ends the
/// command, since a verdict would call the kernel wrong for it.
class UnusableBackend : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace attest

// What the ranks of a job have to be at one about before they begin: that each has what it needs, and the same.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "harness/base/user_error.h"
#include "harness/mpi/ranks.h"

namespace attest {

/// An error that every rank throws at the same place: rank 0 says it, and all end.
class CommonError : public UserError {
 public:
  using UserError::UserError;
};

/// Takes a step that all ranks take. Where it throws on one of them, whatever that is, all throw CommonError, with the
/// words of the first; by itself (`ranks` is null) it is the step alone.
void take_together(Ranks* ranks, const std::function<void()>& step);

/// Facts by name, which must be the same on all ranks. Throws CommonError for the first that is not, with `advice` on
/// its name: "rank 1 on HOST has other NAME than rank 0 on HOST (1, 2); ADVICE".
void require_same(Ranks& ranks, const std::map<std::string, std::string>& facts,
                  const std::map<std::string, std::string>& advice);

/// Facts by name of all ranks: where they differ, all values in the order of their letters, with " / " between.
std::map<std::string, std::string> facts_of_all(Ranks& ranks, const std::map<std::string, std::string>& facts);

}  // namespace attest

// What a task lets a submission state of its arithmetic and conventions.
//
// Bounds follow what is stated, and conventions change what is right: whoever may state anything is right with
// anything. Without a word from the task sums and weights are in float or better, functions are off by 2 ulps at most,
// and definitions are attest's own. How the work is arranged (blocks of keys, parts, base 2) is free.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/conventions.h"
#include "harness/backends/isolation/isolation_options.h"
#include "reference/arithmetic/arithmetic.h"

namespace attest {

class PermittedStatements {
 public:
  /// "stored_weights=bf16", "exp_ulps=4" (the largest), "flush_to_zero", "key_rounding=any", "lse_base=2". Fields are
  /// those of Arithmetic and Conventions; a value with blanks has a colon for each. Throws UserError for others.
  void permit(const std::string& word);

  /// The first statement beyond these: "exp_ulps is 300, the task permits up to 2"; "" where there is none.
  std::string excess(const Arithmetic& stated, const Call& call) const;
  std::string excess(const Conventions& stated) const;

 private:
  std::string excess_of_one(const Arithmetic& stated, const Call& call) const;

  std::map<std::string, std::vector<std::string>, std::less<>> values_;  ///< of the task, by field
};

/// Hears what the workers of a submission state, whenever they do. Threads may share one.
class StatementWatch {
 public:
  explicit StatementWatch(const PermittedStatements& permitted) : permitted_(permitted) {}
  /// `options` for workers that are heard by `watch`. A statement of the arithmetic beyond what is permitted throws
  /// BackendError where it is heard: no bound is derived from it.
  static IsolationOptions heard(IsolationOptions options, const std::shared_ptr<StatementWatch>& watch);
  /// The first excess since the beginning; "" where there was none.
  std::string excess() const;

 private:
  void note(const std::string& excess);

  const PermittedStatements permitted_;
  mutable std::mutex mutex_;
  std::string excess_;
};

}  // namespace attest

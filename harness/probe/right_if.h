// What a backend would have to state of its arithmetic for its failing cases to be right, where there is such a
// statement.
//
// Bounds are functions of the arithmetic: what came out of the failing cases is judged again under other statements,
// few members first. A wrong kernel must not be excused, so that all of its failing cases must be right under the
// statement, and the probes must not contradict it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/restatement.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// What failed, and how it was said to be rounded.
struct WrongResult {
  const Case* source = nullptr;  ///< outlives this
  Arithmetic stated;
  std::shared_ptr<const GuardedOutputs> outputs;
};

struct RightIf {
  /// What would be stated of calls in these storage types; of all types in which a case fails when there is one part.
  struct Part {
    std::vector<DType> types;
    std::vector<StatedField> fields;
  };
  std::vector<Part> parts;

  /// "stored_weights=bf16, normalised_before_storage for calls in bf16".
  std::string statement() const;
  /// How it is written where the backend is: statement_code.
  std::string code(StatementLanguage language) const;
};

/// The failing cases of one backend.
class WrongResults {
 public:
  void add(WrongResult result);
  /// A failure that no statement makes right, such as a crash; or one of which nothing was kept.
  void add_unexplained() { explained_ = false; }

  /// Nothing where there is no statement of up to three members under which each of them is right, or none was found in
  /// so many seconds.
  std::optional<RightIf> right_if(Backend& backend, int threads, double seconds) const;

 private:
  bool explained_ = true;
  double bytes_ = 0;
  std::vector<WrongResult> list_;
};

/// Whether a failure of this kind may be one of a statement alone: numbers that are too far off.
bool may_be_of_statement(const Verdict& verdict);

}  // namespace attest

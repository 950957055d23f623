// Comparison with stages that a file holds: printed walkthroughs and results computed by others.
//
// Printed values are compared at their printed precision (metadata `tolerance`); computed ones within the bound of the
// arithmetic that the file's metadata states (`producer`). A backend gets its own bound on top.
#pragma once

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/compare.h"
#include "harness/verdict/answers.h"

namespace attest {

class GoldenCheck {
 public:
  GoldenCheck(const Case& source, const Inputs& inputs) : source_(source), inputs_(inputs) {}

  /// Every stage of the file against the reference's.
  Comparison compare_reference() const;

  /// The output of a backend that takes the case against `output`, and its weights (obtained with V = I) against
  /// `weights`.
  Comparison compare_backend(Backend& backend, const Answers& answers) const;

 private:
  const Case& source_;
  const Inputs& inputs_;
};

}  // namespace attest

#include "harness/cases/generated_suites.h"

#include "harness/cases/axes.h"
#include "harness/cases/deep_backward.h"
#include "harness/cases/drawn.h"

namespace attest {

std::span<const GeneratedSuite> generated_suites() {
  static constexpr GeneratedSuite kSuites[] = {
      {"axes",
       "Every size and number of the table walked through its values, all else as small as it goes, in three types",
       axes_problems},
      {"drawn", "Two to five options at unusual values together, drawn by --seed: another seed, other cases",
       drawn_problems},
      {"deep_backward",
       "Suite deep once more with gradients, beside its results and in place of them: before a release",
       deep_backward_problems},
  };
  return kSuites;
}

}  // namespace attest

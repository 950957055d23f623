// Waivers: backends/<name>/waivers lists cases whose suspect results are known to be right, each with its reason behind
// a #. Only `suspect` can be waived: a result outside its bound is wrong.
#pragma once

#include <string>
#include <vector>

#include "harness/verdict/listed_cases.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Fills verdict.waiver when the verdict is suspect and listed.
void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers);
/// The same with its backend's list. Throws UserError at an entry without a reason.
void apply_waiver(Verdict& verdict);

}  // namespace attest

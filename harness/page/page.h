// A page of results: one file of HTML with its style, script, drawings and data inside, that loads nothing from
// anywhere.
//
// Text from results stands in it as text, whatever it holds: the template escapes it for HTML, the drawings for XML,
// and the data of the case table for a script. Sections are data (JSON) that page.mustache lays out; the script only
// makes the case table interactive, all else reads without it.
#pragma once

#include <string>
#include <vector>

#include "harness/page/result_files.h"

namespace attest {

/// The page of these files. `command`: how it was asked for.
std::string results_page(const ResultFiles& results, const std::vector<std::string>& command);

}  // namespace attest

// Committed lists of cases beside a backend: expected_refusals and waivers.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct ListedCase {
  std::string pattern;  ///< a canonical case line or a file's name; * stands for anything
  std::string comment;  ///< what stands behind # on the line, "" if nothing

  bool matches(const std::string& case_line) const;
};

/// backends/<backend>/<file>, a case a line; empty when there is no such file. Throws UserError at a line that is no
/// case.
std::vector<ListedCase> listed_cases(const std::string& backend, const std::string& file);

/// The entry that stands for this case, or nullptr.
const ListedCase* find_case(const std::vector<ListedCase>& list, const std::string& case_line);

}  // namespace attest

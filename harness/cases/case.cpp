#include "harness/cases/case.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "reference/options/case_line.h"

namespace attest {

Case case_from_line(const std::string& line, const std::string& where) {
  const std::string prefix = where.empty() ? "" : where + ": ";
  Case result;
  try {
    result.problem = parse_case(line);
  } catch (const CaseError& error) {
    const std::size_t at = std::min(error.column() - 1, line.size());
    throw UserError(fmt::format("{}case line, column {}: {}  (\"{} >>{}\")", prefix, error.column(), error.what(),
                                line.substr(0, at), line.substr(at)));
  }
  result.label = print_case(result.problem);
  result.where = where;
  return result;
}

Case case_from_argument(const std::string& argument) {
  if (argument.ends_with(".safetensors")) return case_from_file(argument);
  return case_from_line(argument);
}

}  // namespace attest

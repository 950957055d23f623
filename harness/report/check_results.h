// A file of `attest check --json`, read as a whole.
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "harness/report/report.h"
#include "harness/report/verdict_json.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// A small case that fails as a larger one does.
struct ShrunkFailure {
  std::string case_line, backend, smallest, reason, repro;
  std::string cause{};  ///< by which the small case fails; older files don't say
};

struct CheckResults {
  std::string name;    ///< of the file, without its folder
  OrderedJson header;  ///< as harness/FILES.md says
  std::vector<Verdict> verdicts;
  std::vector<ShrunkFailure> shrunk;
  double seconds = 0;
  bool interrupted = false;
  std::vector<std::string> problems;  ///< with the run as a whole
  std::vector<RightIfTold> right_if;  ///< under which the failing cases of a backend would be right
};

/// Verdicts that were kept of an earlier run are left out. Throws UserError, in one line that begins with `path`, for a
/// file that is no file of verdicts, is cut off, has no summary or is of a newer schema.
CheckResults read_check(std::istream& file, const std::string& path);
/// The same of a file that is to be opened; throws UserError where it can't be read or is larger than any run's.
CheckResults read_check(const std::filesystem::path& path);

}  // namespace attest

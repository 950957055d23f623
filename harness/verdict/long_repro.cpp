#include "harness/verdict/long_repro.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>

#include "harness/base/fingerprint.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"

namespace attest {
namespace {

/// Takes the quoted line out of the command; false where it isn't there.
bool take_out(std::string& command, const std::string& line) {
  const std::string quoted = "'" + line + "'";
  const std::size_t at = command.rfind(quoted);
  if (at == std::string::npos) return false;
  command.erase(at, quoted.size());
  return true;
}

}  // namespace

void keep_long_lines(Verdict& verdict) {
  if (!is_failure(verdict) || std::max(verdict.case_line.size(), verdict.after.size()) <= kLongestArgument) return;
  std::string command = verdict.repro;
  if (!take_out(command, verdict.case_line)) return;
  if (!verdict.after.empty() && !take_out(command, verdict.after)) return;
  const std::string lines = (verdict.after.empty() ? "" : verdict.after + "\n") + verdict.case_line + "\n";
  Fingerprint fingerprint;
  fingerprint.add(lines);
  try {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("attest-" + fingerprint.text() + ".cases");
    OutputFile file(path);
    file.stream() << lines;
    file.finish();
    verdict.repro = trimmed(command) + " --suite-file " + shell_quoted(path.string());
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace attest

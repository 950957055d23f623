#include "harness/base/data_folder.h"

#include "harness/base/installation.h"
#include "harness/base/machine.h"

namespace attest {

namespace fs = std::filesystem;

fs::path data_folder(const std::string& what) {
  // A program of others, linked to an installed attest, was told.
  if (!installed_data().empty()) return installed_data() / what;
  // Beside an installed program, then in the tree that it was built from.
  const fs::path installed = program_path().parent_path().parent_path() / "share" / "attest" / what;
  std::error_code error;
  if (fs::is_directory(installed, error)) return installed;
  return fs::path(ATTEST_SOURCE_DIR) / (what == "backends" ? "" : "tests") / what;
}

}  // namespace attest

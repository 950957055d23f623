#include "harness/base/data_folder.h"

#include "harness/base/machine.h"

namespace attest {

namespace fs = std::filesystem;

fs::path data_folder(const std::string& what) {
  // Beside an installed program first, then in the tree it was built from.
  const fs::path installed = program_path().parent_path().parent_path() / "share" / "attest" / what;
  std::error_code error;
  if (fs::is_directory(installed, error)) return installed;
  const fs::path source =
      what == "backends" ? fs::path(ATTEST_SOURCE_DIR) / what : fs::path(ATTEST_SOURCE_DIR) / "tests" / what;
  if (fs::is_directory(source, error)) return source;
  return fs::path(ATTEST_DATA_DIR) / what;  // a program of others, linked to an installed attest
}

}  // namespace attest

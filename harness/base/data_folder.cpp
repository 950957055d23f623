#include "harness/base/data_folder.h"

#include "harness/base/installation.h"
#include "harness/base/machine.h"
#include "harness/base/user_error.h"

namespace attest {

namespace fs = std::filesystem;

fs::path data_folder(const std::string& what) {
  // A program of others, linked to an installed attest, was told.
  if (!installed_data().empty()) return installed_data() / what;
  const fs::path program = program_path().parent_path();
  const fs::path installed = (program / ATTEST_DATA_FROM_PROGRAM / what).lexically_normal();
  // Programs of a build lie one level below it, too, and find its share/attest whatever the installation's is called.
  const fs::path built = program.parent_path() / "share" / "attest" / what;
  std::error_code error;
  return !fs::is_directory(installed, error) && fs::is_directory(built, error) ? built : installed;
}

fs::path required_data_folder(const std::string& what) {
  fs::path folder = data_folder(what);
  std::error_code error;
  if (fs::is_directory(folder, error)) return folder;
  throw UserError(folder.string() +
                  " is missing: it belongs to attest; copy the whole installation, not the program alone");
}

fs::path seen_from_here(const fs::path& path) {
  std::error_code error;
  const fs::path here = fs::current_path(error);  // fs::proximate would throw by itself, whatever it is given
  if (error) return path;
  const fs::path seen = fs::proximate(path, here, error);
  return error ? path : seen;
}

}  // namespace attest

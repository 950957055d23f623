// The file in which `attest tune` keeps what it chose, for later runs on the same device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// What was chosen for one backend on one device, and what says so.
struct Tuned {
  std::string backend, library, device, processor;  ///< where it holds: all four, and the version, must be the same
  std::size_t version = 0;
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  double ratio = 1;                ///< time of run() to that of the standard parameters, over all cases
  std::vector<std::string> cases;  ///< that were timed
  std::string attest, commit;      ///< of the program that chose
};

class TunedChoices {
 public:
  /// The parameters chosen for this backend on this device; empty where none are.
  std::vector<std::pair<std::string, std::int64_t>> chosen_for(const Backend& backend) const;
  /// In place of what was chosen under the same conditions.
  void put(Tuned tuned);
  const std::vector<Tuned>& all() const { return list_; }

 private:
  friend TunedChoices read_tuned(const std::filesystem::path& path);
  std::vector<Tuned> list_;
};

/// `chosen` with what it depends on: backend, library, device and version of `backend`, this processor and program.
Tuned tuned_here(const Backend& backend, const Tuning& chosen);

/// The file that is read: $ATTEST_TUNED, else "attest/tuned.json" in $XDG_CACHE_HOME or ~/.cache. Empty where there is
/// no such folder. Throws UserError where $ATTEST_TUNED names a file that is not there.
std::filesystem::path tuned_file();
/// The file to write when none is named. Throws UserError where no folder of the user's can be found.
std::filesystem::path default_tuned_file();

/// No choices where the file is not there. Throws UserError, in one line, for one that can't be read or is no such
/// file.
TunedChoices read_tuned(const std::filesystem::path& path);
void write_tuned(std::ostream& out, const TunedChoices& choices);

}  // namespace attest

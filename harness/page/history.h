// Many benchmark files of one machine in the order of their dates: a series for each backend and case, and where it
// changed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/speed/change_points.h"

namespace attest {

/// One file.
struct HistoryRun {
  std::string file, date, commit;
};

struct HistoryPoint {
  std::size_t run;                       ///< of History::runs
  double median = 0, low = 0, high = 0;  ///< ms of one run(), and the interval of the median
};

/// Between two changes.
struct HistoryLevel {
  std::size_t first = 0, last = 0;  ///< of HistorySeries::points
  double middle = 0;                ///< median of its medians, ms
  double low = 0, high = 0;         ///< noise band: nearly all medians of the level lie in it
};

struct HistorySeries {
  std::string backend, case_line;
  std::vector<HistoryPoint> points;  ///< files that lack it are left out
  std::vector<HistoryLevel> levels;  ///< one more than there are changes
};

struct History {
  std::string cpu, threads;
  std::vector<HistoryRun> runs;
  std::vector<HistorySeries> series;
};

/// Every .json file of a folder. Throws UserError, in one line, for an empty folder, a file that is no benchmark file
/// or has no date, and files of different processors or numbers of threads, whose times say nothing of one another.
History read_history(const std::filesystem::path& folder);

}  // namespace attest

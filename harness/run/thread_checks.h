// What a right result is asked about threads, in a few cases of each backend: once with very many of them, hundreds of
// times while others take the cores away, and beside a plan in another thread where the backend promises that.
//
// Which cases, their lines decide, so that a failure repeats with its line.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/set/backend_set.h"
#include "harness/verdict/prepared_case.h"

namespace attest {

class ThreadChecks {
 public:
  /// More threads than any table of a backend should have room for.
  static constexpr int kManyThreads = 66;

  /// `others`: the same backends made for other numbers of threads. Both outlive this.
  ThreadChecks(const BackendSet& backends, const std::vector<BackendSet>& others)
      : backends_(backends), others_(others) {}

  /// Throws CaseFault where a result is wrong, and what the backend throws. From several threads at once, each with
  /// another backend.
  void look_at(const PreparedCase& prepared, Backend& backend);

 private:
  /// How many cases of a backend were asked what.
  struct Asked {
    bool many = false;
    int repeated = 0, side_by_side = 0;
  };
  /// Whether this case is one of the few; then it is counted.
  bool take(const std::string& backend, const Problem& problem, int Asked::*count, int most);
  bool take_many(const std::string& backend, const Problem& problem);
  void with_many_threads(const PreparedCase& prepared, const std::string& backend) const;
  void many_times(const PreparedCase& prepared, Backend& backend) const;

  const BackendSet& backends_;
  const std::vector<BackendSet>& others_;
  std::mutex mutex_;
  std::map<std::string, Asked> asked_;
};

}  // namespace attest

// What an interrupted run of `check` had found, to go on from there.
#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/report/conditions.h"
#include "harness/verdict/verdict.h"

namespace attest {

class EarlierRun {
 public:
  /// Nothing was found before.
  EarlierRun() = default;
  /// Takes verdicts that were found under these conditions.
  explicit EarlierRun(Conditions now) : now_(std::move(now)) {}
  /// The same, and reads `path` and what unfinished runs left beside it ("<path>.part" and a number). A last line that
  /// was cut off is left out. Throws UserError when one of the files can't be read, is no file of verdicts, or comes
  /// from another program, other libraries, options or threads: its verdicts may not be ours. No file is changed.
  EarlierRun(const std::filesystem::path& path, Conditions now);

  /// Adds the verdicts of one file; `name` stands in messages. Of two verdicts on one case and backend a failure stays.
  void read(std::istream& file, const std::string& name);
  /// A failure of the last run, which this one is to find again: find() doesn't know it, and it is left where the run
  /// does not come to it.
  void hold(Verdict verdict);
  /// The verdict of a case on a backend, if there was one; of a case from a file only if its content was the same.
  const Verdict* find(const std::string& suite, const std::string& case_line, const std::string& content,
                      const std::string& backend) const;
  /// The verdict is part of the present run now.
  void take(const Verdict& verdict);
  std::size_t size() const { return verdicts_.size(); }
  std::size_t taken() const { return taken_; }
  /// Those that the present run did not ask for, or has not come to.
  std::vector<Verdict> left() const;
  /// Removes the unfinished files: their verdicts stand in a finished one now.
  void remove_parts() const;

 private:
  struct Held {
    Verdict verdict;
    bool taken = false;
    bool again = false;  ///< is to be found anew
  };
  Conditions now_;
  std::map<std::string, Held> verdicts_;
  std::vector<std::filesystem::path> parts_;
  std::size_t taken_ = 0;
};

}  // namespace attest

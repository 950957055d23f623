// What an interrupted run of `check` had found, to go on from there.
#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace attest {

class EarlierRun {
 public:
  EarlierRun() = default;
  /// Reads `path` and what unfinished runs left beside it ("<path>.part..."). A last line that was cut off is left out.
  /// Throws UserError when a file comes from another build of attest, whose verdicts may not be ours.
  explicit EarlierRun(const std::filesystem::path& path);

  /// Adds the verdicts of one file; `name` stands in messages.
  void read(std::istream& file, const std::string& name);
  /// The verdict of a case on a backend, if there was one.
  std::optional<Verdict> find(const std::string& suite, const std::string& case_line, const std::string& backend) const;
  std::size_t size() const { return verdicts_.size(); }
  /// Removes the unfinished files: their verdicts stand in a finished one now.
  void remove_parts() const;

 private:
  void read(const std::filesystem::path& path);
  std::map<std::string, Verdict> verdicts_;
  std::vector<std::filesystem::path> parts_;
};

}  // namespace attest

// The file that judgements of a folder go to, a line each: whole or not at all, and never twice.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "harness/report/judgements.h"

namespace attest {

class ResultLines {
 public:
  /// Opens the file or makes it, for this process alone; a last line that is torn is removed. Standard output for "-",
  /// nothing for "". Throws UserError where another process writes it, it can't be written, or it has other lines than
  /// judgements.
  explicit ResultLines(const std::filesystem::path& path);
  ~ResultLines();
  ResultLines(const ResultLines&) = delete;
  ResultLines& operator=(const ResultLines&) = delete;

  /// What the file held when it was opened.
  const std::vector<RankedSubmission>& earlier() const { return earlier_; }
  /// Appends a line, which has no end yet, and waits until the system has it on its disk. Any thread may. Throws
  /// OutputError.
  void append(const std::string& line);

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::mutex writing_;
  std::vector<RankedSubmission> earlier_;
};

}  // namespace attest

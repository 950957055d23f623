// A file that is complete or not there: written beside its place and renamed when finished.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace attest {

class OutputFile {
 public:
  /// Opens "<path>.part". Throws UserError when that can't be written, and for "-": standard output is taken.
  explicit OutputFile(const std::filesystem::path& path);
  /// Removes the part file when finish() was not reached.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// Flushes, checks and renames. Throws UserError when the disk refused something.
  void finish();

 private:
  std::filesystem::path path_, part_;
  std::ofstream stream_;
  bool finished_ = false;
};

}  // namespace attest

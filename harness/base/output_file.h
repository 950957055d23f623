// A file that is complete or not there: written beside its place and renamed when finished.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace attest {

/// Results that could not be written, after work was done. One line: which file, why, what is left of it. The program
/// ends with exit code 1.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OutputFile {
 public:
  /// Opens "<path>.part<process>", or another that begins with "<path>.part": what unfinished runs left stays. A device
  /// or a pipe is written to as it is. Throws UserError when that can't be written, when another process that is still
  /// alive writes the same file, and for "-": standard output is taken.
  explicit OutputFile(const std::filesystem::path& path);
  /// Removes the part file when finish() was not reached, unless it is to be kept.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// Writes and hands over to the system at once; the first failure is remembered for finish().
  void write(const std::string& text);
  /// From now on what was written stays in part(), should finish() not be reached or fail.
  void keep_unfinished() { keep_ = true; }
  const std::filesystem::path& part() const { return part_; }
  /// Whether it is written beside its place.
  bool can_begin_anew() const { return !direct_; }
  /// Another part is begun, to stand for what was written so far; that stays until finish(), and where that is not
  /// reached instead of the new part.
  void begin_anew();
  /// Flushes, checks and renames. Throws OutputError when the system refused something.
  void finish();

 private:
  [[noreturn]] void fail(const std::string& reason);
  /// Sets part_ and lock_. Returns errno, 0 for success.
  int make_part();

  std::filesystem::path path_, part_, first_part_;  ///< the last: empty until begin_anew()
  std::ofstream stream_;
  int lock_ = -1;        ///< a descriptor of the part, locked as long as this process lives
  int first_lock_ = -1;  ///< of the first part
  int error_ = 0;        ///< errno of the first failure
  bool finished_ = false, keep_ = false, direct_ = false;
};

/// Whether an OutputFile of one would be that of the other: the same name in the same folder, however that is written.
/// Devices and pipes can be written to by several.
bool is_same_output(const std::filesystem::path& one, const std::filesystem::path& other);

/// What stands unfinished beside `path`: "<path>.part" and a number.
std::vector<std::filesystem::path> unfinished_parts(const std::filesystem::path& path);
/// Removes those of them that nobody is writing.
void remove_abandoned_parts(const std::filesystem::path& path);

}  // namespace attest

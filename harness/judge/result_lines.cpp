#include "harness/judge/result_lines.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"

namespace attest {

ResultLines::ResultLines(const std::filesystem::path& path) : path_(path) {
  if (path_.empty()) return;
  if (path_ == "-") {
    file_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return;
  }
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw UserError(path_.string() + ": can't be written: " + std::strerror(errno));
  struct stat about {};
  if (fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) return;  // a device or a pipe holds nothing
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) throw UserError(path_.string() + ": another process writes to it");
    JudgementFile found = read_judgements(path_);
    if (ftruncate(file_, static_cast<off_t>(found.complete_bytes)) != 0)
      throw UserError(path_.string() + ": can't be written: " + std::strerror(errno));
    earlier_ = std::move(found.all);
  } catch (...) {
    close(file_);
    throw;
  }
}

ResultLines::~ResultLines() {
  if (file_ >= 0) close(file_);
}

void ResultLines::append(const std::string& line) {
  if (file_ < 0) return;
  const std::string whole = line + '\n';
  const std::lock_guard<std::mutex> lock(writing_);
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t written = write(file_, whole.data() + done, whole.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw OutputError(path_.string() + ": a judgement could not be written: " + std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
  fdatasync(file_);
}

}  // namespace attest

#include "harness/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "harness/base/user_error.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// An open descriptor that workers do not inherit; -1 when there is none.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool good() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// The lock of a folder, held for the moment in which a run looks for others and makes its part, or removes some.
/// Another program may hold it as long as it likes, as `flock FOLDER attest ...` does: it is waited for no longer than
/// attest itself ever holds it.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : folder_(folder, O_RDONLY | O_DIRECTORY) {
    for (int tries = 100; folder_.good() && tries > 0; --tries) {
      held_ = flock(folder_.number(), LOCK_EX | LOCK_NB) == 0;
      taken_ = !held_ && errno == EWOULDBLOCK;
      if (!taken_) return;  // held, or of a file system that knows no locks
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  bool held() const { return held_; }
  bool taken() const { return taken_; }  ///< by another program

 private:
  Descriptor folder_;
  bool held_ = false, taken_ = false;
};

/// A lock goes with its process, however that ends: a part without one is what an ended run left.
bool is_being_written(const fs::path& part) {
  const Descriptor file(part, O_RDONLY | O_NONBLOCK);
  return file.good() && flock(file.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

bool is_same_output(const fs::path& one, const fs::path& other) {
  std::error_code error;
  const fs::file_status status = fs::status(one, error);
  if (one.filename() != other.filename() || (fs::exists(status) && !fs::is_regular_file(status))) return false;
  return fs::equivalent(folder_of(one), folder_of(other), error);
}

std::vector<fs::path> unfinished_parts(const fs::path& path) {
  std::vector<fs::path> parts;
  const std::string prefix = path.filename().string() + ".part";
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    if (name.find_first_not_of("0123456789.", prefix.size()) == std::string::npos) parts.push_back(entry->path());
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

void remove_abandoned_parts(const fs::path& path) {
  const FolderLock folder(folder_of(path));  // a part that a run has just made is not locked yet
  if (!folder.held()) return;
  std::error_code error;
  for (const fs::path& part : unfinished_parts(path)) {
    if (!is_being_written(part)) fs::remove(part, error);
  }
}

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  if (path_ == "-" || path_ == "/dev/stdout") {
    throw UserError(path_.string() + ": standard output has the table; name a file to write to");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::is_directory(status)) throw UserError(path_.string() + ": is a folder; name a file to write to");
  direct_ = fs::exists(status) && !fs::is_regular_file(status);
  if (direct_) {
    part_ = path_;
  } else {
    // Of two runs that begin at the same moment one looks when the other's part is there and locked.
    const FolderLock folder(folder_of(path_));
    if (folder.taken()) {
      throw UserError(path_.string() + ": another program holds a lock on the folder " + folder_of(path_).string() +
                      "; lock a file instead of the folder, or name a file in another one");
    }
    for (const fs::path& part : unfinished_parts(path_)) {
      if (!is_being_written(part)) continue;
      throw UserError(path_.string() + ": another run is writing it (" + part.filename().string() +
                      "); wait for its end, or name another file");
    }
    if (const int error_number = make_part(); error_number != 0) {
      throw UserError(path_.string() + ": can't be written: " + std::strerror(error_number) +
                      "; check the folder and its permissions");
    }
  }
  errno = 0;
  stream_.open(part_, std::ios::binary | (direct_ ? std::ios::out : std::ios::out | std::ios::trunc));
  if (stream_) return;
  error_ = errno ? errno : EIO;
  if (lock_ >= 0) {
    close(lock_);
    unlink(part_.c_str());
  }
  throw UserError(path_.string() + ": can't be written: " + std::strerror(error_));
}

int OutputFile::make_part() {
  const std::string base = path_.string() + ".part" + std::to_string(getpid());
  for (int number = 0;; ++number) {
    part_ = number == 0 ? base : base + "." + std::to_string(number);
    Descriptor file(part_, O_RDWR | O_CREAT | O_EXCL);
    if (file.good()) {
      flock(file.number(), LOCK_EX | LOCK_NB);
      lock_ = file.release();
      return 0;
    }
    if (errno != EEXIST) return errno;
  }
}

void OutputFile::begin_anew() {
  stream_.close();
  first_part_ = part_;
  first_lock_ = std::exchange(lock_, -1);
  error_ = make_part();  // what the first part lacks is none of the new one's
  if (error_ != 0) return;
  errno = 0;
  stream_.open(part_, std::ios::binary | std::ios::out | std::ios::trunc);
  if (!stream_) error_ = errno ? errno : EIO;
}

OutputFile::~OutputFile() {
  stream_.close();
  std::error_code error;
  const bool anew = !first_part_.empty();
  if (!finished_ && !direct_ && (anew || !keep_)) fs::remove(part_, error);
  if (anew && (finished_ || !keep_)) fs::remove(first_part_, error);
  if (lock_ >= 0) close(lock_);
  if (first_lock_ >= 0) close(first_lock_);
}

void OutputFile::write(const std::string& text) {
  errno = 0;
  stream_ << text << std::flush;
  if (!stream_ && error_ == 0) error_ = errno;
}

void OutputFile::fail(const std::string& reason) {
  throw OutputError(path_.string() + ": could not be written: " + reason +
                    (keep_ && !direct_
                         ? "; what was written before is in " + (first_part_.empty() ? part_ : first_part_).string()
                         : ""));
}

void OutputFile::finish() {
  if (stream_) errno = 0;
  stream_.close();
  if (stream_.fail()) fail(error_ || errno ? std::strerror(error_ ? error_ : errno) : "is the disk full?");
  if (!direct_) {
    std::error_code error;
    fs::rename(part_, path_, error);
    if (error) fail(error.message());
  }
  finished_ = true;
}

}  // namespace attest

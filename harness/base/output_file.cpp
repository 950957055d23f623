#include "harness/base/output_file.h"

#include <unistd.h>

#include "harness/base/user_error.h"

namespace attest {

OutputFile::OutputFile(const std::filesystem::path& path)
    : path_(path), part_(path.string() + ".part" + std::to_string(getpid())) {
  if (path_ == "-") throw UserError("-: standard output has the table; name a file to write to");
  std::error_code error;
  if (std::filesystem::is_directory(path_, error)) {
    throw UserError(path_.string() + ": is a folder; name a file to write to");
  }
  stream_.open(part_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw UserError(path_.string() + ": can't be written; check the folder and its permissions");
}

OutputFile::~OutputFile() {
  if (finished_) return;
  stream_.close();
  std::error_code error;
  std::filesystem::remove(part_, error);
}

void OutputFile::finish() {
  stream_.close();
  if (stream_.fail()) throw UserError(path_.string() + ": writing failed; is the disk full?");
  std::error_code error;
  std::filesystem::rename(part_, path_, error);
  if (error) throw UserError(path_.string() + ": " + error.message());
  finished_ = true;
}

}  // namespace attest

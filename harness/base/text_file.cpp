#include "harness/base/text_file.h"

#include <cerrno>
#include <cstring>

#include "harness/base/user_error.h"

namespace attest {

std::ifstream open_text(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw UserError(path.string() + ": is a folder, not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(path.string() + ": can't be read: " + std::strerror(errno ? errno : EIO));
  const std::uintmax_t size = std::filesystem::file_size(path, error);  // a pipe has none
  if (!error && size > max_bytes) {
    throw UserError(path.string() + ": has " + std::to_string(size) + " bytes; " + std::to_string(max_bytes) +
                    " are the limit");
  }
  return file;
}

bool read_line(std::istream& file, Line& line, std::size_t max_size) {
  line.text.clear();
  line.too_long = false;
  std::streambuf& buffer = *file.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  bool any = false;
  for (int c = buffer.sbumpc();; c = buffer.sbumpc()) {
    if (c == kEnd) {
      file.setstate(any ? std::ios::eofbit : std::ios::eofbit | std::ios::failbit);
      return any;
    }
    any = true;
    if (c == '\n') return true;
    if (line.text.size() == max_size) {
      line.too_long = true;
      line.text.clear();
      line.text.shrink_to_fit();
    }
    if (!line.too_long) line.text += static_cast<char>(c);
  }
}

}  // namespace attest

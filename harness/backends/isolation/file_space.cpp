#include "harness/backends/isolation/file_space.h"

#include <algorithm>

namespace attest {

std::size_t FileSpace::take(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  std::size_t at = begin_;
  for (const auto& [first, end] : taken_) {
    if (first - at >= bytes) break;
    at = end;
  }
  taken_[at] = at + bytes;
  return at;
}

std::size_t FileRange::resize(std::size_t bytes) {
  if (held_ && bytes == bytes_) return offset_;
  release();
  offset_ = space_.take(bytes);
  bytes_ = bytes;
  held_ = true;
  return offset_;
}

void FileRange::release() {
  if (held_) space_.give_back(offset_);
  held_ = false;
}

}  // namespace attest

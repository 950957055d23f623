// Which part of a shared file belongs to which plan, while several are alive.
#pragma once

#include <cstddef>
#include <map>

namespace attest {

/// Hands out ranges of bytes that don't overlap, the lowest that is free first.
class FileSpace {
 public:
  /// Everything before `begin` is someone else's.
  explicit FileSpace(std::size_t begin) : begin_(begin) {}

  /// Where the new range begins. An empty one takes a byte.
  std::size_t take(std::size_t bytes);
  /// `offset` as take() gave it.
  void give_back(std::size_t offset) { taken_.erase(offset); }

 private:
  std::size_t begin_;
  std::map<std::size_t, std::size_t> taken_;  ///< from its first byte to the one behind it
};

/// A range for as long as this lives, the same one while its size doesn't change.
class FileRange {
 public:
  explicit FileRange(FileSpace& space) : space_(space) {}
  ~FileRange() { release(); }
  FileRange(const FileRange&) = delete;
  FileRange& operator=(const FileRange&) = delete;

  /// Where it begins, made so large.
  std::size_t resize(std::size_t bytes);

 private:
  void release();

  FileSpace& space_;
  std::size_t offset_ = 0, bytes_ = 0;
  bool held_ = false;
};

}  // namespace attest

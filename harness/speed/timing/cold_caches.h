// Caches that hold nothing of what a run needs.
#pragma once

#include <cstddef>
#include <vector>

namespace attest {

class ColdCaches {
 public:
  /// Takes twice the bytes of the last-level cache, 64 MiB where that is not known.
  explicit ColdCaches(int threads);
  /// Writes all of it, a share on each thread, so that what lay in the caches lies there no more.
  void evict();
  std::size_t bytes() const { return buffer_.size(); }

 private:
  int threads_;
  std::vector<unsigned char> buffer_;
};

}  // namespace attest

// How much memory this process takes at most while something happens.
#pragma once

namespace attest {

/// From its construction on.
class MemoryPeak {
 public:
  /// Gives free memory back to the system first, so that what is taken now shows. A write to `clear_refs` makes the
  /// system's count start anew.
  explicit MemoryPeak(const char* clear_refs = "/proc/self/clear_refs");
  /// Resident bytes at most since then, beyond those at the beginning; 0 where the system doesn't tell, or its count
  /// could not be made to start anew. What is taken
  /// and given back between two looks counts; memory of a device doesn't.
  double bytes() const;

 private:
  double before_ = 0;
  bool anew_ = false;
};

}  // namespace attest

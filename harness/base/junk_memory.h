// Memory that a program gets anew holds no zeros while one of these lives.
#pragma once

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace attest {

/// Large blocks come from the system as zeros, and code that counts on that is right until memory is used again. With
/// glibc's allocator malloc and new fill what they hand out with bytes 0xfe, a large negative number in every
/// floating-point type or a NaN; elsewhere, and for pools of an implementation's own, nothing changes.
class JunkMemory {
 public:
  JunkMemory() {
    fill_with_complement_of(0x01);
    ++alive_;
  }
  ~JunkMemory() {
    if (--alive_ == 0) fill_with_complement_of(0);
  }
  JunkMemory(const JunkMemory&) = delete;
  JunkMemory& operator=(const JunkMemory&) = delete;

  /// Whether one lives in this thread: a worker process is told to do the same.
  static bool alive() { return alive_ > 0; }

 private:
  /// 0: handed out as it is.
  static void fill_with_complement_of(int byte) {
#if defined(__GLIBC__)
    mallopt(M_PERTURB, byte);
#else
    (void)byte;
#endif
  }

  static inline thread_local int alive_ = 0;
};

}  // namespace attest

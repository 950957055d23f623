// The floating-point modes of a thread: a kernel that changes them changes everyone's results after it.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace attest {

enum class FloatMode : std::uint8_t { none, rounding, flush_to_zero };

/// Remembers rounding mode and flush-to-zero flags, and puts them back when it goes.
class FloatEnvironment {
 public:
  FloatEnvironment() : rounding_(std::fegetround()), control_(control()) {}
  ~FloatEnvironment() { restore(); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  /// What is no longer as it was.
  FloatMode changed() const {
    if (std::fegetround() != rounding_) return FloatMode::rounding;
    return control() != control_ ? FloatMode::flush_to_zero : FloatMode::none;
  }

 private:
  static unsigned control() {
#if defined(__SSE2__)
    return _mm_getcsr() & 0x8040u;  // flush to zero, denormals are zero
#elif defined(__aarch64__)
    return static_cast<unsigned>(fpcr() & kFlushes);
#else
    return 0;
#endif
  }
  void restore() const {
    std::fesetround(rounding_);
#if defined(__SSE2__)
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | control_);
#elif defined(__aarch64__)
    const std::uint64_t restored = (fpcr() & ~kFlushes) | control_;
    __asm__ volatile("msr fpcr, %0" : : "r"(restored));
#endif
  }
#if defined(__aarch64__)
  static constexpr std::uint64_t kFlushes = 0x1080000;  // FZ, and FZ16 for halves
  static std::uint64_t fpcr() {
    std::uint64_t value = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
#endif

  int rounding_;
  unsigned control_;
};

}  // namespace attest

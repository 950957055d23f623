#include "harness/search/edges.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace attest {
namespace {

constexpr std::size_t kEntries = std::size_t{1} << 16;
std::array<std::atomic<bool>, kEntries> ran;
std::atomic<std::size_t> uncounted{0};

/// Fibonacci hashing: neighbouring addresses come to lie apart.
std::size_t entry_of(std::uintptr_t place) {
  return static_cast<std::size_t>((static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15u) >> 48);
}

}  // namespace

std::size_t count_new_edges() { return uncounted.exchange(0, std::memory_order_relaxed); }

}  // namespace attest

/// The compilers' name for it. Weak: whoever links another one counts for himself.
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {  // NOLINT(bugprone-reserved-identifier)
  auto& ran = attest::ran[attest::entry_of(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)))];
  // Read first: a table that no thread writes to stays in every processor's cache.
  if (!ran.load(std::memory_order_relaxed) && !ran.exchange(true, std::memory_order_relaxed)) {
    attest::uncounted.fetch_add(1, std::memory_order_relaxed);
  }
}

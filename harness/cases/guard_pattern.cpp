#include "harness/cases/guard_pattern.h"

#include <cstdint>
#include <cstring>

namespace attest {
namespace {

// Quiet NaNs with payloads nobody computes. 0x7fe5 is one in both 16-bit types.
constexpr std::uint16_t kPattern16 = 0x7fe5u;
constexpr std::uint32_t kPattern32 = 0x7fe5a5a5u;
constexpr std::uint64_t kPattern64 = 0x7ffca5a5a5a5a5a5u;

const void* pattern_of(DType dtype) {
  switch (size_of(dtype)) {
    case 8: return &kPattern64;
    case 4: return &kPattern32;
    default: return &kPattern16;
  }
}

}  // namespace

void fill_pattern(std::vector<std::byte>& bytes, DType dtype) {
  const std::size_t step = size_of(dtype);
  for (std::size_t at = 0; at + step <= bytes.size(); at += step)
    std::memcpy(bytes.data() + at, pattern_of(dtype), step);
}

bool is_pattern(const std::vector<std::byte>& bytes, DType dtype, std::size_t element) {
  return std::memcmp(bytes.data() + element * size_of(dtype), pattern_of(dtype), size_of(dtype)) == 0;
}

}  // namespace attest

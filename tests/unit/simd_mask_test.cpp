// Masks that the kernels of backends/simd read, for each instruction set that this processor has.
#if defined(ATTEST_HAS_SIMD)
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/simd_targets.h"

namespace attest::simd {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// Memory behind whose last byte nothing can be read.
class GuardedBytes {
 public:
  GuardedBytes() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    data_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(data_ + page_, page_, PROT_NONE);
  }
  ~GuardedBytes() { munmap(data_, 2 * page_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  /// The last bytes of it.
  void* last(std::size_t bytes) { return data_ + page_ - bytes; }

 private:
  std::size_t page_;
  char* data_;
};

/// Element n of a mask: of every four keys one is hidden. The numbers are exact in 16 bits.
float element(std::int64_t n) { return n % 4 == 1 ? kHidden : static_cast<float>(n % 7) / 4; }

/// Scores of a key that is seen, of one that is hidden, and NaN for either.
float score(std::int64_t j) { return j % 8 < 2 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(j); }

void expect_masked(const Kernels<float>& kernels, DType type, std::int64_t keys) {
  constexpr std::int64_t kRows = 4, kFirst = 3;
  GuardedBytes memory;
  const std::int64_t stride = kFirst + keys;
  auto* mask = static_cast<char*>(memory.last(static_cast<std::size_t>(kRows * stride) * size_of(type)));
  std::vector<const void*> rows;
  for (std::int64_t n = 0; n < kRows * stride; ++n)
    store(mask, type, n, type == DType::boolean ? (element(n) != kHidden ? 1.0 : 0.0) : element(n));
  for (std::int64_t r = 0; r < kRows; ++r) rows.push_back(mask + r * stride * static_cast<std::int64_t>(size_of(type)));
  support::Aligned<float> scores(static_cast<std::size_t>(kRows * kTileKeys));
  for (std::int64_t n = 0; n < kRows * kTileKeys; ++n) scores[static_cast<std::size_t>(n)] = score(n % kTileKeys);

  Tile<float> tile;
  tile.rows = kRows;
  tile.keys = keys;
  tile.weights = scores.data();
  tile.mask_rows = rows.data();
  tile.mask_key = kFirst;
  tile.mask_type = type;
  kernels.mask(tile);

  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const float value = element(r * stride + kFirst + j), got = scores[static_cast<std::size_t>(r * kTileKeys + j)];
      const float want = value == kHidden ? kHidden : type == DType::boolean ? score(j) : score(j) + value;
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
          << name_of(type) << ", row " << r << ", key " << j << ": " << got << " instead of " << want;
    }
  }
}

TEST(SimdMask, IsAddedOrHides) {
  for (const Target& target : targets()) {
    const auto& kernels = kernels_of<float>(target);
    SCOPED_TRACE(target.name);
    for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::boolean}) {
      if (!kernels.reads_mask(type)) continue;
      for (const std::int64_t keys : {64, 63, 33, 17, 16, 5, 1}) expect_masked(kernels, type, keys);
    }
    EXPECT_TRUE(kernels.reads_mask(DType::f32));
    EXPECT_FALSE(kernels.reads_mask(DType::f64));
    EXPECT_TRUE(kernels_of<double>(target).reads_mask(DType::f64));
    EXPECT_FALSE(kernels_of<double>(target).reads_mask(DType::boolean));
  }
}

TEST(SimdMask, BesideIntervalsGroupsAndPaddedRows) {
  with_each_target([](Backend& backend, const Target& target) {
    SCOPED_TRACE(target.name);
    for (const char* line : {
             "batch=2 heads=4/2 seq=150x203 dim=24 mask=add:B1QK:neginf(0.3) poison=hidden:kv out=o,lse",
             "heads=2 seq=150x203 dim=24 causal align=bottom-right mask=add:1HQK:normal mask.dtype=bf16 out=o,lse",
             "heads=6/2 seq=150 dim=24 causal window=70:0 mask=bool:1HQK:random(0.5) poison=hidden:kv out=o,lse",
             "batch=2 heads=2 seq=131 dim=24 lengths=131,70 mask=add:BH1K:neginf(0.5) mask.dtype=f16",
             "heads=3 seq=5x300 dim=24 mask=bool:11QK:rows(0.5) out=o,lse",
             "heads=2 seq=150 dim=24 prefix=9:causal causal window=20:0 mask=add:11QK:normal",
             "dtype=f64 heads=2 seq=150x203 dim=24 mask=add:1HQK:neginf(0.3) poison=hidden:kv out=o,lse",
             "dtype=bf16 heads=2 seq=150x203 dim=24 mask=add:1HQK:neginf(0.3) poison=hidden:kv out=o,lse",
         })
      EXPECT_FALSE(is_failure(check(backend, line))) << line << check(backend, line).reason;
  });
}

}  // namespace
}  // namespace attest::simd
#endif

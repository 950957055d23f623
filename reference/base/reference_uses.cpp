#include "reference/base/reference_uses.h"

#include <atomic>

namespace attest {
namespace {

std::atomic<std::uint64_t> uses{0};

}  // namespace

std::uint64_t reference_uses() { return uses.load(); }

void count_reference_use() { uses.fetch_add(1, std::memory_order_relaxed); }

}  // namespace attest

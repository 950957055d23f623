// Numbers whose first stands at the start of a cache line, so that no vector lies across two: a load that does costs
// two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace attest::support {

template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  explicit LineAllocator(const LineAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* data, std::size_t) { ::operator delete(data, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};

template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

}  // namespace attest::support

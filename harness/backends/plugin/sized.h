// A struct of the plug-in interface with room for what a younger plug-in knows behind it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace attest {

/// T at the front of at least `theirs` bytes, zeros beyond what this host knows; T's member `size` is this host's.
template <class T>
class Sized {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Sized(std::uint64_t theirs = sizeof(T))
      : words_((std::max<std::size_t>(sizeof(T), theirs) + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t)) {
    std::memset(static_cast<void*>(words_.data()), 0, words_.size() * sizeof(std::max_align_t));
    get()->size = sizeof(T);
  }
  T* get() { return reinterpret_cast<T*>(words_.data()); }
  const T* get() const { return reinterpret_cast<const T*>(words_.data()); }
  T* operator->() { return get(); }
  const T* operator->() const { return get(); }

 private:
  std::vector<std::max_align_t> words_;
};

}  // namespace attest

#include "harness/python/writable_cache.h"

#include <cstring>
#include <string>

#include "backends/backend.h"
#include "harness/cases/tensor_bytes.h"
#include "reference/call/tensor_place.h"

namespace attest {
namespace {

/// Element by element, bit for bit.
void copy_elements(const ConstTensor& from, const MutableTensor& to) {
  const std::size_t size = size_of(from.dtype);
  each_index(from.shape, [&](auto... at) {
    std::memcpy(static_cast<std::byte*>(to.data) + static_cast<std::size_t>(to.offset(at...)) * size,
                static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(from.offset(at...)) * size, size);
  });
}

}  // namespace

void WritableCache::take(const Inputs& inputs) {
  keys_.take(inputs.k());
  values_.take(inputs.v());
}

void WritableCache::Copy::take(const ConstTensor& from) {
  original = view = from;
  const std::size_t span = span_bytes(from);
  whole = span <= kCompactBytes;
  if (!whole) view.strides = dense_place(from.shape).strides;
  bytes.resize(span_bytes(view));
  view.data = bytes.data();
  if (!whole)
    copy_elements(from, {bytes.data(), view.dtype, view.shape, view.strides});
  else if (span > 0)
    std::memcpy(bytes.data(), from.data, span);
}

void WritableCache::Copy::give(const MutableTensor& to, const char* name) const {
  copy_elements(view, to);
  if (!whole || bytes.empty()) return;
  const auto* const was = static_cast<const std::byte*>(original.data);
  std::vector<std::byte> expected(was, was + bytes.size());
  copy_elements(view, {expected.data(), view.dtype, view.shape, view.strides});
  if (expected != bytes) throw BackendError(std::string("wrote between the elements of ") + name);
}

void WritableCache::give(const Outputs& outputs) const {
  if (outputs.cache_k()) keys_.give(*outputs.cache_k(), "k");
  if (outputs.cache_v()) values_.give(*outputs.cache_v(), "v");
}

}  // namespace attest

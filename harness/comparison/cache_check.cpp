#include "harness/comparison/cache_check.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness/comparison/compare.h"
#include "reference/call/tensor_table.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

/// A flag for each row of each page, or of each sequence: whether the call writes it.
std::vector<char> new_rows(const Call& p, const Inputs& inputs) {
  const Index4 n = inputs.k().shape;
  std::vector<char> fresh(static_cast<std::size_t>(n[0] * n[2]), 0);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t j = p.first_new_key(b); j < p.key_count(b); ++j) {
      const KeyPlace place = place_in_cache(inputs, b, j);
      fresh[static_cast<std::size_t>(place.batch * n[2] + place.row)] = 1;
    }
  }
  return fresh;
}

bool same_bits(const ConstTensor& a, std::int64_t in_a, const ConstTensor& b, std::int64_t in_b) {
  const std::size_t size = size_of(a.dtype);
  return std::memcmp(static_cast<const std::byte*>(a.data) + static_cast<std::size_t>(in_a) * size,
                     static_cast<const std::byte*>(b.data) + static_cast<std::size_t>(in_b) * size, size) == 0;
}

}  // namespace

OutputFault find_cache_fault(const Call& call, const Inputs& inputs, const GuardedOutputs& outputs) {
  if (!call.append) return {};
  const std::vector<char> fresh = new_rows(call, inputs);
  for (const TensorId id : {TensorId::cache_k, TensorId::cache_v}) {
    const ConstTensor& was = id == TensorId::cache_k ? inputs.k() : inputs.v();
    const ConstTensor now = outputs.view(id);
    std::string changed;
    each_index(was.shape, [&](std::int64_t store, std::int64_t h, std::int64_t row, std::int64_t d) {
      if (!changed.empty() || fresh[static_cast<std::size_t>(store * was.shape[2] + row)] != 0) return;
      const std::int64_t from = was.offset(store, h, row, d), to = now.offset(store, h, row, d);
      if (same_bits(was, from, now, to)) return;
      changed =
          fmt::format("{} = {:.9g} is in no new row, and was {:.9g}", place_text(row_of(id).name, {store, h, row, d}),
                      load(now.data, now.dtype, to), load(was.data, was.dtype, from));
    });
    if (!changed.empty()) return {{Cause::changed_cache, std::string(row_of(id).name)}, changed};
  }
  return {};
}

}  // namespace attest

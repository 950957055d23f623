#include "harness/speed/trust/result_bits.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/cases/fill.h"
#include "harness/cases/tensor_bytes.h"
#include "reference/call/tensor_table.h"

namespace attest {
namespace {

struct ResultMemory {
  const std::byte* data;
  DType dtype;
  std::vector<ByteRange> used;
};

/// Of each output, in the order of the table of tensors.
std::vector<ResultMemory> memory_of(GuardedOutputs& outputs) {
  std::vector<ResultMemory> list;
  const Outputs views = outputs.views();
  for (const TensorRow& row : tensor_rows()) {
    const MutableTensor* view = views.find(row.id);
    if (view) list.push_back({static_cast<const std::byte*>(view->data), view->dtype, used_ranges(*view)});
  }
  return list;
}

}  // namespace

std::uint64_t fingerprint(GuardedOutputs& outputs) {
  constexpr std::size_t kElements = 4096;
  std::uint64_t sum = 0;
  for (const auto& [data, dtype, used] : memory_of(outputs)) {
    const std::size_t size = size_of(dtype);
    for (const ByteRange& range : used) {
      const std::size_t count = range.size() / size;
      // An odd step meets every column in turn.
      const std::size_t step = std::max<std::size_t>(count / kElements, 1) | 1;
      for (std::size_t n = 0; n < count; n += step) {
        std::uint64_t word = 0;
        std::memcpy(&word, data + range.first + n * size, size);
        sum = hash_words(sum, 1, word);
      }
    }
  }
  return sum;
}

bool same_bits(GuardedOutputs& a, GuardedOutputs& b) {
  const std::vector<ResultMemory> x = memory_of(a), y = memory_of(b);
  for (std::size_t n = 0; n < x.size(); ++n) {
    for (const ByteRange& range : x[n].used) {
      if (range.size() > 0 && std::memcmp(x[n].data + range.first, y[n].data + range.first, range.size()) != 0)
        return false;
    }
  }
  return true;
}

}  // namespace attest

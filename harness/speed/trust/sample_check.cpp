#include "harness/speed/trust/sample_check.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/cases/fill.h"
#include "harness/cases/tensor_bytes.h"
#include "reference/call/tensor_table.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr double kRows = 16;

Expectation expect_rows(const Problem& problem, const Inputs& inputs, const Producer& producer, std::uint64_t draw) {
  Problem drawn = problem;
  drawn.data.seed = draw;  // of the rows that are chosen: the data are there already
  return expect(drawn, inputs, {producer}, 1, kRows * operator_of(problem).row_operations(problem));
}

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

SampleRows::SampleRows(const Problem& problem, const Inputs& inputs, const Producer& producer, std::uint64_t draw)
    : problem_(problem), computed_(expect_rows(problem, inputs, producer, draw)) {}

SampleRows::SampleRows(const Problem& problem, const Expectation& known, const Producer& producer, ColumnSigns signs)
    : problem_(problem), known_(&known), producer_(known.index_of(producer)), signs_(std::move(signs)) {}

Comparison SampleRows::compare(const GuardedOutputs& outputs) const {
  const Expectation& expectation = computed_ ? *computed_ : *known_;
  return compare_outputs(
      problem_, expectation, expectation.bounds[producer_], outputs,
      [&](TensorId id, std::int64_t column, double value) { return signs_.negates(id, column) ? -value : value; });
}

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

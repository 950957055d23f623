#include "harness/speed/trust/sample_check.h"

#include <algorithm>
#include <cstring>

#include "harness/cases/fill.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr double kRows = 16;

Expectation expect_rows(const Problem& problem, const Inputs& inputs, const Producer& producer, std::uint64_t draw) {
  Problem drawn = problem;
  drawn.data.seed = draw;  // of the rows that are chosen: the data are there already
  return expect(drawn, inputs, {producer}, 1, kRows * operator_of(problem).row_operations(problem));
}

}  // namespace

SampleRows::SampleRows(const Problem& problem, const Inputs& inputs, const Producer& producer, std::uint64_t draw)
    : problem_(problem), expectation_(expect_rows(problem, inputs, producer, draw)) {}

Comparison SampleRows::compare(const GuardedOutputs& outputs) const {
  return compare_outputs(problem_, expectation_, expectation_.bounds[0], outputs);
}

std::uint64_t fingerprint(GuardedOutputs& outputs) {
  constexpr std::size_t kElements = 4096;
  const MutableTensor out = outputs.views().out();
  const std::size_t size = size_of(out.dtype);
  std::uint64_t sum = span_bytes(out) / size;
  for (const ByteRange& range : used_ranges(out)) {
    const auto* bytes = static_cast<const std::byte*>(out.data) + range.first;
    const std::size_t count = range.size() / size;
    // An odd step meets every column in turn.
    const std::size_t step = std::max<std::size_t>(count / kElements, 1) | 1;
    for (std::size_t n = 0; n < count; n += step) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + n * size, size);
      sum = hash_words(sum, 1, word);
    }
  }
  return sum;
}

bool same_bits(GuardedOutputs& a, GuardedOutputs& b) {
  const MutableTensor x = a.views().out(), y = b.views().out();
  const std::vector<ByteRange> used = used_ranges(x);
  return std::all_of(used.begin(), used.end(), [&](const ByteRange& range) {
    const auto at = [&](const MutableTensor& t) { return static_cast<const std::byte*>(t.data) + range.first; };
    return range.size() == 0 || std::memcmp(at(x), at(y), range.size()) == 0;
  });
}

}  // namespace attest

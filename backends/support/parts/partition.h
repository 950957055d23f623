// How the positions of a sequence are dealt out to the processes that compute its attention together.
#pragma once

#include <cstdint>
#include <vector>

namespace attest::support {

/// Positions from `first` up to, and without, `last`.
struct PositionSpan {
  std::int64_t first = 0, last = 0;
  bool operator==(const PositionSpan&) const = default;
};

enum class PartOrder : std::uint8_t {
  contiguous,  ///< part r of n has the r-th of n pieces
  zigzag,  ///< part r has the r-th piece of 2n and the r-th from the end: under a causal mask all have as much to do
};

/// The positions of part `part` (from 0) of `parts` (at least 1): spans in ascending order, none of them empty, none
/// touching the next. Pieces differ by one position at most, whether or not their number divides the length; of a
/// length that is too short for all some parts are empty. Every position is in exactly one part.
inline std::vector<PositionSpan> spans_of_part(std::int64_t length, std::int64_t part, std::int64_t parts,
                                               PartOrder order) {
  const std::int64_t pieces = order == PartOrder::zigzag ? 2 * parts : parts;
  // length * n may be beyond the type; whole pieces and what is left over are not.
  const auto edge = [&](std::int64_t n) { return length / pieces * n + length % pieces * n / pieces; };
  std::vector<PositionSpan> spans;
  const auto take = [&](std::int64_t piece) {
    const PositionSpan span{edge(piece), edge(piece + 1)};
    if (span.first == span.last) return;
    if (!spans.empty() && spans.back().last == span.first) {
      spans.back().last = span.last;
    } else {
      spans.push_back(span);
    }
  };
  take(part);
  if (order == PartOrder::zigzag) take(pieces - 1 - part);
  return spans;
}

}  // namespace attest::support

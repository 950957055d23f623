// Masks that follow where queries and keys stand in their sequence: drafted tokens, spans, chunks.
//
// The queries of a sequence are its last ones: query i stands at key i + keys - queries, of the batch's own lengths
// where the mask has a batch axis, else of Lq and Lk.
#pragma once

#include <cstdint>

#include "reference/call/problem.h"

namespace attest {

class SequenceMask {
 public:
  static bool has(const Fill& fill);
  /// Of the problem's mask, whose fill is one of these.
  explicit SequenceMask(const Problem& problem);

  /// Whether query i sees key j, for the batch and head of the mask's own indices. Beyond a batch's lengths everything
  /// is shown: the lengths alone hide there.
  bool shows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

 private:
  enum class Kind { tree, spans, chunks };

  bool in_tree(std::uint64_t sequence, std::int64_t token, std::int64_t other) const;
  bool in_one_span(std::uint64_t sequence, std::int64_t position, std::int64_t other) const;
  std::uint64_t draw(std::uint64_t stream, std::uint64_t sequence, std::int64_t n) const;

  Call call_;
  Kind kind_;
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace attest

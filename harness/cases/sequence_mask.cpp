#include "harness/cases/sequence_mask.h"

#include <algorithm>

#include "harness/cases/fill.h"

namespace attest {
namespace {

constexpr std::uint64_t kParentStream = 5000, kPhaseStream = 5001, kSpanStream = 5002;

}  // namespace

bool SequenceMask::has(const Fill& fill) {
  return fill.name == "tree" || fill.name == "spans" || fill.name == "chunks";
}

SequenceMask::SequenceMask(const Problem& problem)
    : call_(problem.call),
      kind_(problem.data.mask_fill.name == "tree"    ? Kind::tree
            : problem.data.mask_fill.name == "spans" ? Kind::spans
                                                     : Kind::chunks),
      size_(static_cast<std::int64_t>(problem.data.mask_fill.args.at(0))),
      seed_(problem.data.seed) {}

std::uint64_t SequenceMask::draw(std::uint64_t stream, std::uint64_t sequence, std::int64_t n) const {
  return hash_words(seed_, stream, hash_words(seed_, stream, sequence) + static_cast<std::uint64_t>(n));
}

/// Whether `other` is the token or one of its ancestors. A token's parent is an earlier one or the past, each as
/// likely.
bool SequenceMask::in_tree(std::uint64_t sequence, std::int64_t token, std::int64_t other) const {
  while (token > other) {
    const std::uint64_t parents = static_cast<std::uint64_t>(token) + 1;
    token = static_cast<std::int64_t>(draw(kParentStream, sequence, token) % parents) - 1;
  }
  return token == other;
}

/// Whether both lie in one stretch of `size_` tokens that is a span. Half of the stretches are; they begin anywhere.
bool SequenceMask::in_one_span(std::uint64_t sequence, std::int64_t position, std::int64_t other) const {
  const auto size = static_cast<std::uint64_t>(size_);
  const std::int64_t phase = static_cast<std::int64_t>(draw(kPhaseStream, sequence, 0) % size);
  const std::int64_t stretch = (position + phase) / size_;
  return stretch == (other + phase) / size_ && draw(kSpanStream, sequence, stretch) % 2 == 0;
}

bool SequenceMask::shows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const bool by_batch = call_.mask->kept[0];
  const std::int64_t queries = by_batch ? call_.query_count(b) : call_.query_length,
                     keys = by_batch ? call_.key_count(b) : call_.key_length;
  if (i >= queries || j >= keys) return true;
  const std::int64_t position = i + keys - queries;
  const auto sequence = static_cast<std::uint64_t>(b * std::max<std::int64_t>(call_.query_heads, 1) + h);
  switch (kind_) {
    case Kind::chunks: return j <= position && j / size_ == position / size_;
    case Kind::spans: return j <= position || (position >= 0 && in_one_span(sequence, position, j));
    case Kind::tree: break;
  }
  const std::int64_t first = keys - std::min({size_, queries, keys});  // of the drafted tokens
  if (position < first) return j <= position;
  return j < first || in_tree(sequence, position - first, j - first);
}

}  // namespace attest

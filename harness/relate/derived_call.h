// A call that is a part of another one, or the same in another arrangement: its inputs, and where its results stand
// among the other's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/call/problem.h"
#include "reference/call/tensor_table.h"

namespace attest {

/// Which batches, heads, queries and keys of a whole call another call computes, by number.
struct Arrangement {
  Call call;                              ///< the other call; its tensors lie as its layouts say, without strides
  std::vector<std::int64_t> batches;      ///< its batch b is this one of the whole
  std::vector<std::int64_t> first_query;  ///< of its batch b: its query i is query first_query[b] + i of the whole
  std::int64_t first_query_head = 0, first_key_head = 0;
  std::int64_t first_key = 0;
  std::vector<std::vector<std::int64_t>> keys{};  ///< of its batch b: the keys in their order; empty: from first_key on
  std::string about{};                            ///< how it differs, where the case line doesn't tell

  /// The call as it is, each number being itself.
  static Arrangement same(const Call& whole);
  std::int64_t key(std::int64_t b, std::int64_t j) const {
    return keys.empty() ? first_key + j : keys[static_cast<std::size_t>(b)][static_cast<std::size_t>(j)];
  }
};

/// A fault of the arrangement's call is mended where another layout or fewer results do that; nullopt where they don't,
/// and where dropout would be drawn otherwise than in the whole.
std::optional<Arrangement> possible(Arrangement part, const Problem& whole, const Inputs& inputs);

/// The inputs of the part, copied from those of the whole. Rows that the whole doesn't store are zeros. Pages lie in
/// the opposite order of the whole's.
CaseInputs inputs_of_part(const Arrangement& part, const Call& whole, const Inputs& inputs);

/// Whether elements of this result of the part are those of the whole, and not sums over less.
bool is_comparable(const Arrangement& part, const Call& whole, TensorId result);
/// The place in the whole of an element of such a result; nullopt where one of the two doesn't store it.
std::optional<Index4> place_in_whole(const Arrangement& part, const Call& whole, TensorId result, const Index4& at);

}  // namespace attest

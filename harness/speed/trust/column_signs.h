// Other data for gradients, whose right results follow from those of the data that are there.
//
// Where the same columns of q and k are negated, every score stays as it is, bit for bit; where the same columns of v
// and do are, so does every product of the two. Then lse, the weights and their derivatives stay, and o, dq, dk and dv
// are negated in these columns. Where do and dlse are negated as a whole, all gradients are. Linear attention has
// states of keys and values: all columns of q and k get one sign, and each column of a state that sign and that of v.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/call/call.h"

namespace attest {

class ColumnSigns {
 public:
  /// Negates nothing.
  ColumnSigns() = default;
  /// Drawn by `seed`. Where an input keeps several columns in one place, all columns get one sign.
  ColumnSigns(const Call& call, std::uint64_t seed);

  /// Whether this column of an input or a result is negated.
  bool negates(TensorId id, std::int64_t column) const;

 private:
  bool of_key(std::int64_t column) const;
  bool of_value(std::int64_t column) const;

  std::vector<char> key_, value_;  ///< by column; empty where none is negated
  bool loss_ = false;              ///< do, dlse and dpresent as a whole
};

/// Takes back `from` in all inputs of a case, and negates what `to` negates.
void change_signs(CaseInputs& inputs, const ColumnSigns& from, const ColumnSigns& to);

}  // namespace attest

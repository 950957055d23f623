// How a mistake changes what a call gives: the pieces that the table of known mistakes is made of.
#pragma once

#include <initializer_list>
#include <vector>

#include "harness/verdict/known_mistakes.h"

namespace attest {

/// Rows of o as they come out when heads and positions are laid the other way round.
bool transpose_rows(const Call& p, ResultValues& values, Bounds& bounds, Bounds& own,
                    const std::vector<RowIndex>& rows);
/// False of none.
bool scale_list(std::vector<double>& values, double factor);
/// o times a factor, the bound with it.
bool scale_out(ResultValues& values, Bounds& bounds, Bounds& own, double factor);
/// The lse of rows that see nothing, which have -inf.
bool lse_of_empty_rows(const Call& p, ResultValues& values, double value);

/// These gradients times a factor, their bounds with them. False where the call wants none of them, or the factor is 1.
bool scale_gradients(const Call& p, ResultValues& values, Bounds& bounds, Bounds& own,
                     std::initializer_list<TensorId> gradients, double factor);

}  // namespace attest

// How far the scores of a row may be off, step by step (reference/ERROR_BOUNDS.md, "Scores").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/non_finite.h"

namespace attest {

/// Absolute errors of one score after each step.
struct ScoreErrors {
  double raw = 0, capped = 0, biased = 0;
};

/// Whether an operand has a step of its own, and what it loses isn't known: a number that shares the step isn't finite,
/// or may leave the range. Such a row proves nothing, not even where the data decide the class of a result.
bool steps_prove_nothing(const Head& head, const Row& row, const std::vector<ScoreErrors>& scores,
                         const BoundConstants& c);

/// Of every key that row i sees, and of the others where the call asks for scores; else those are 0.
std::vector<ScoreErrors> score_errors(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c);

/// Whether a row that is normalised or rotated, or the product of its scales, may leave the range on the way, or what
/// isn't finite become another number: such a row proves nothing, not even where the data decide the class of a result.
bool operands_may_overflow(const Head& head, const Row& row, const BoundConstants& c);

/// Whether what is stored on the way to a raw score, which may be off by `raw_error`, may become an infinity.
bool step_may_overflow(const Row& row, std::size_t j, double raw_error, const BoundConstants& c);

/// Whether a visible score, or what is stored on its way, may become an infinity, or -inf NaN: such a row proves
/// nothing. A score far below the maximum may become -inf, its weight is 0 all the same. What the data make infinite is
/// left to `special`.
bool scores_may_overflow(const Row& row, const std::vector<ScoreErrors>& scores, const NonFiniteScores& special,
                         const BoundConstants& c);

}  // namespace attest

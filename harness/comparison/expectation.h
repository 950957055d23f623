// The expectation of a case: the reference's values, and their bounds for each stated arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/problem.h"
#include "reference/call/result_values.h"
#include "reference/call/samples.h"
#include "reference/call/tensor_table.h"

namespace attest {

struct RowIndex {
  std::int64_t b, h, i;
  bool operator==(const RowIndex&) const = default;
  auto operator<=>(const RowIndex&) const = default;
};

/// The query rows that are checked: all of them, or beyond `budget` multiply-adds a seeded sample that always
/// holds the first and last rows and rows beside tile edges; where rows are cheap, those beside powers of two, too.
std::vector<RowIndex> rows_to_check(const Problem& problem, double budget);

/// The key heads whose gradients are checked, 1 for each that is, by batch and key head: empty, which means all, or
/// beyond `budget` a seeded sample, the last one always and whole heads only.
std::vector<char> key_heads_to_check(const Problem& problem, double budget);

/// The multiply-adds of the reference up to which every row is checked.
inline constexpr double kRowBudget = 3e8;
/// The least cost of a row, in multiply-adds.
inline constexpr double kLeastRowCost = 256;

/// Query rows whose deviations are derived as well.
inline constexpr std::size_t kSampledRows = 32;

/// The stages of the scores that a call may request, in the order of all lists.
inline constexpr std::array<TensorId, 4> kScoreStages = {TensorId::raw, TensorId::capped, TensorId::biased,
                                                         TensorId::weights};

/// One number for each checked element of each result. A result of query rows has them row after row of those that are
/// checked, any other one in the order of its axes; what was not asked for is empty, but for o and lse of a
/// forward pass.
using Bounds = ResultValues;

struct Expectation : ResultValues {
  std::vector<RowIndex> rows;
  std::vector<char> key_heads;  ///< as key_heads_to_check gives them
  Bounds own;                   ///< the reference's own rounding
  std::vector<Producer> producers;
  std::vector<Bounds> bounds;  ///< one for each producer
  std::vector<SampledElement> sampled;
  std::vector<std::vector<double>> deviations;  ///< of the sampled elements, a list for each producer

  /// The place of a producer in `producers`. It must be one of those asked for.
  std::size_t index_of(const Producer& producer) const;
  /// The indices of the element at this place in the list of the result's values.
  Index4 indices_of(const Call& call, const SampledElement& element) const;
  const Bounds& bounds_for(const Producer& producer) const { return bounds[index_of(producer)]; }
};

/// Runs the reference once over the rows and derives all bounds on the way.
Expectation expect(const Problem& problem, const Inputs& inputs, const std::vector<Producer>& producers, int threads,
                   double budget = kRowBudget);

}  // namespace attest

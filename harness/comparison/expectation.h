// What a case must give: the reference's rows, and for each declared arithmetic the bound around them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/problem.h"
#include "reference/call/tensors.h"
#include "reference/operators/operator_tensors.h"

namespace attest {

struct RowIndex {
  std::int64_t b, h, i;
  bool operator==(const RowIndex&) const = default;
  auto operator<=>(const RowIndex&) const = default;
};

/// The query rows that are checked: all of them, or beyond `budget` multiply-adds a seeded sample that always
/// holds the first and last rows and rows beside tile edges; where rows are cheap, those beside powers of two, too.
std::vector<RowIndex> rows_to_check(const Problem& problem, double budget);

/// Multiply-adds of the reference up to which every row is checked.
inline constexpr double kRowBudget = 3e8;
/// A row costs as much as so many of them even where there is little to multiply.
inline constexpr double kLeastRowCost = 256;

/// Rows whose deviations are derived as well, and columns of each: enough to notice what all of them share, few enough
/// to cost little.
inline constexpr std::size_t kSampledRows = 32, kSampledColumns = 4;

/// The stages of the scores that can be asked for, in this order wherever they are listed.
inline constexpr std::array<Output, 4> kScoreStages = {Output::raw, Output::capped, Output::biased, Output::weights};

/// One number for each element of the checked rows and of the present outputs; what was not asked for is empty.
struct RowValues {
  std::vector<double> out;                    ///< rows x Dv
  std::vector<double> lse;                    ///< rows
  std::array<std::vector<double>, 4> stages;  ///< rows x Lk each, as kScoreStages
  std::vector<std::vector<double>> present;   ///< as present_outputs(), whole
};
using Bounds = RowValues;

/// An output element whose error is also held against its standard deviation.
struct SampledOutput {
  std::size_t row;      ///< of Expectation::rows
  std::int64_t column;  ///< of Dv
};

struct Expectation : RowValues {
  std::vector<RowIndex> rows;
  Bounds own;  ///< the reference's own rounding
  std::vector<Producer> producers;
  std::vector<Bounds> bounds;  ///< one for each producer
  std::vector<SampledOutput> sampled;
  std::vector<std::vector<double>> deviations;  ///< of the sampled outputs, a list for each producer
  double visible_pairs = 0;                     ///< over the checked rows

  /// The place of a producer in `producers`. It must be one of those asked for.
  std::size_t number_of(const Producer& producer) const;
  const Bounds& bounds_for(const Producer& producer) const { return bounds[number_of(producer)]; }
};

/// Runs the reference once over the rows and derives all bounds on the way.
Expectation expect(const Problem& problem, const Inputs& inputs, const std::vector<Producer>& producers, int threads,
                   double budget = kRowBudget);

}  // namespace attest

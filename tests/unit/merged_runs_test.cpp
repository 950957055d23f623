// The bound and the deviation of rows whose keys are cut into runs (Arithmetic::parts): merges as distributed backends
// do them lie within, and 16-bit results on their way only where that is declared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/support/parts/partition.h"
#include "backends/support/parts/row_merge.h"
#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/error_deviation.h"
#include "tests/unit/helpers.h"
#include "tests/unit/parts_of_keys.h"

namespace attest {
namespace {

struct Merged {
  std::vector<float> out;
  float lse = 0;
};

/// In float32, but for the type in which the results of the runs wait.
Merged merge_runs(const Head& head, const Row& row, std::int64_t parts, DType waits) {
  const std::size_t columns = row.output.size();
  Merged merged{std::vector<float>(columns), 0};
  support::RowMerge<float> merge(merged.out);
  for (std::int64_t part = 0; part < parts; ++part) {
    float top = -std::numeric_limits<float>::infinity(), sum = 0;
    std::vector<float> out(columns);
    const auto each = [&](const auto& act) {
      const auto keys = static_cast<std::int64_t>(row.seen.size());
      for (const auto& span : support::spans_of_part(keys, part, parts, support::PartOrder::contiguous)) {
        for (std::int64_t j = span.first; j < span.last; ++j) {
          if (row.seen[static_cast<std::size_t>(j)])
            act(j, static_cast<float>(row.biased[static_cast<std::size_t>(j)]));
        }
      }
    };
    each([&](std::int64_t, float score) { top = std::max(top, score); });
    each([&](std::int64_t j, float score) {
      const float weight = std::exp(score - top);
      sum += weight;
      for (std::size_t c = 0; c < columns; ++c) out[c] += weight * static_cast<float>(head.value_row(j)[c]);
    });
    for (float& number : out) number = sum > 0 ? static_cast<float>(stored_as(waits, number / sum)) : 0;
    merge.add(std::span<const float>(out), sum > 0 ? top + std::log(sum) : -std::numeric_limits<float>::infinity());
  }
  merged.lse = merge.finish();
  return merged;
}

/// The largest error over its bound, and over its deviation, of all rows of a case.
struct Worst {
  double output = 0, lse = 0, deviations = 0;
};

Worst worst_of(const std::string& line, std::int64_t parts, DType waits, const Arithmetic& declared) {
  const Computed c(line);
  const Inputs inputs = c.inputs.views();
  const Head head(c.problem, inputs, 0, 0);
  Worst worst;
  const std::vector<std::int64_t> columns = {0, 1, 2};
  for (std::int64_t i = 0; i < c.problem.call.query_length; ++i) {
    const Row row = c.row(i);
    const Merged merged = merge_runs(head, row, parts, waits);
    RowBound bound;
    bound_row(head, row, i, {declared, DType::f32}, bound);
    const std::vector<double> deviation = RowDeviation(head, row, i, columns).of({declared, DType::f32});
    for (std::size_t at = 0; at < row.output.size(); ++at) {
      const double error = std::fabs(static_cast<double>(merged.out[at]) - row.output[at]);
      worst.output = std::max(worst.output, error / bound.output[at]);
      if (at < columns.size()) worst.deviations = std::max(worst.deviations, error / deviation[at]);
    }
    if (row.visible_count > 0)
      worst.lse = std::max(worst.lse, std::fabs(static_cast<double>(merged.lse) - row.lse) / bound.lse);
  }
  return worst;
}

Arithmetic in_parts(std::int64_t parts, DType waits) {
  Arithmetic a;
  a.key_block = 16;
  a.parts = parts;
  a.stored_parts = waits;
  return a;
}

const char* const kLines[] = {
    "seq=9x40 dim=8 out=o,lse",
    "seq=9x40 dim=8 causal align=bottom-right out=o,lse",
    "seq=9x40 dim=8 scale=1 fill=spread(88) out=o,lse",
    "seq=9x40 dim=8 scale=30 out=o,lse",
    "seq=9x40 dim=8 mask=add:111K:finitemin(0.5) out=o,lse",
    "seq=3x5 dim=4 out=o,lse",
};

TEST(MergedRuns, StayWithinTheirBound) {
  for (const char* line : kLines) {
    for (const std::int64_t parts : {1, 2, 3, 7, 16}) {
      const Worst worst = worst_of(line, parts, DType::f32, in_parts(parts, DType::f32));
      EXPECT_LE(worst.output, 1) << line << ", " << parts;
      EXPECT_LE(worst.lse, 1) << line << ", " << parts;
      EXPECT_GT(worst.output, 0) << line << ", " << parts;
    }
  }
}

TEST(MergedRuns, AreNotSuspect) {
  for (const char* line : {kLines[0], kLines[1], kLines[3]}) {
    for (const std::int64_t parts : {2, 7, 16}) {
      EXPECT_LE(worst_of(line, parts, DType::f32, in_parts(parts, DType::f32)).deviations, kSuspectDeviations) << line;
    }
  }
}

TEST(MergedRuns, SixteenBitResultsOnTheirWayMustBeDeclared) {
  for (const DType waits : {DType::bf16, DType::f16}) {
    EXPECT_LE(worst_of(kLines[0], 4, waits, in_parts(4, waits)).output, 1);
    EXPECT_GT(worst_of(kLines[0], 4, waits, in_parts(4, DType::f32)).output, 1);
  }
}

TEST(MergedRuns, CostNoMoreThanTheyMay) {
  // A bound that only grows: by little where few runs are merged, and never smaller for more of them.
  const Computed c(kLines[0]);
  const Inputs inputs = c.inputs.views();
  const Head head(c.problem, inputs, 0, 0);
  const Row row = c.row(0);
  const auto bound_of = [&](std::int64_t parts) {
    RowBound bound;
    bound_row(head, row, 0, {in_parts(parts, DType::f32), DType::f32}, bound);
    return bound.output[0];
  };
  EXPECT_LT(bound_of(0), bound_of(2));
  EXPECT_LT(bound_of(2), bound_of(16));
  EXPECT_LT(bound_of(2), 3 * bound_of(0));
}

}  // namespace
}  // namespace attest

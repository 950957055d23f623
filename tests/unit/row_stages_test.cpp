// What a reader wants to see of a row besides the row: what was added to its scores, and which keys it sees.
#include "harness/verdict/row_stages.h"

#include <cmath>

#include "tests/unit/helpers.h"

namespace attest {
namespace {

struct OneHead {
  explicit OneHead(const std::string& line, std::int64_t i)
      : computed(line), views(computed.inputs.views()), head(computed.problem, views, 0, 0) {
    head.attend(i, row);
  }
  Computed computed;
  Inputs views;
  Head head;
  Row row;
};

TEST(RowStages, WhatIsAddedIsMaskAndAlibiTogether) {
  const OneHead one("seq=4 dim=2 causal alibi=0.5", 2);
  EXPECT_EQ(added_scores(one.row), (std::vector<double>{-1, -0.5, 0, -kInfinity}));
}

TEST(RowStages, ScoresAsTheyEnterTheSoftmax) {
  const OneHead one("seq=4 dim=2 causal", 1);
  const std::vector<double> scores = masked_scores(one.row);
  EXPECT_EQ(scores[0], one.row.biased[0]);
  EXPECT_EQ(scores[1], one.row.biased[1]);
  EXPECT_EQ(scores[2], -kInfinity);
  EXPECT_TRUE(std::isfinite(one.row.biased[2]));  // the row itself holds hidden scores, too
}

/// A number so low that its factor is 0 hides a key as -inf does; one added to the whole row hides nothing.
TEST(RowStages, AKeyIsHiddenWhereItHasNoPart) {
  const OneHead causal("seq=4 dim=2 causal", 1);
  EXPECT_EQ(hidden_keys(causal.row), (std::vector<double>{0, 0, 1, 1}));
  const OneHead lowest("seq=4 dim=2 mask=add:BHQK:finitemin(1)", 1);
  EXPECT_EQ(hidden_keys(lowest.row), (std::vector<double>{0, 0, 0, 0}));
  const OneHead some("seq=16 dim=2 mask=add:BHQK:large seed=1", 1);
  const std::vector<double> hidden = hidden_keys(some.row);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(hidden[j] != 0, some.row.bias(j).additive < -1e8) << j;
  }
}

}  // namespace
}  // namespace attest

// What backends have copies of, in meaning: where keys lie and which weights dropout keeps, held against the reference.
#include <gtest/gtest.h>

#include "backends/support/dropout.h"
#include "backends/support/key_place.h"
#include "reference/softmax/key_place.h"
#include "reference/softmax/philox.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(OwnCopies, KeysLieWhereTheReferenceFindsThem) {
  for (const char* line : {"batch=2 seq=3x9 dim=2", "batch=2 seq=3x9 dim=2 past=4", "batch=3 seq=3x9 dim=2 past=2,6,0",
                           "batch=2 seq=3x9 dim=2 paged=4", "batch=2 seq=3x9 dim=2 paged=1 lengths=4,9",
                           "batch=2 seq=9 dim=2 layout=thd lengths=q:4,9/k:4,9",
                           "batch=2 seq=9 dim=2 past=3,1 paged=4 layout=thd lengths=q:4,9/k:4,9"}) {
    const Computed c(line);
    const Inputs inputs = c.inputs.views();
    for (std::int64_t b = 0; b < c.problem.call.batch; ++b) {
      for (std::int64_t j = 0; j < c.problem.call.stored_keys(b); ++j) {
        const KeyPlace expected = place_of_key(c.problem, inputs, b, j);
        const support::KeyPlace found = support::find_key(inputs, b, j);
        EXPECT_EQ(found.past, expected.in == KeyPlace::In::past) << line;
        EXPECT_EQ(found.batch, expected.batch) << line;
        EXPECT_EQ(found.row, expected.row) << line;
      }
    }
  }
}

TEST(OwnCopies, DropoutKeepsTheSameWeights) {
  for (const double probability : {0.0, 0x1p-33, 0.1, 0.3, 0.5, 1 - 0x1p-32}) {
    const std::uint64_t below = dropout_threshold(probability);
    EXPECT_EQ(support::drop_below(probability), below);
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0} - 5}) {
      for (std::int64_t n = 0; n < 2000; ++n) {
        EXPECT_EQ(support::keeps_weight(seed, below, n % 3, n % 7, n * n, 1999 - n),
                  dropout_keeps(seed, below, n % 3, n % 7, n * n, 1999 - n));
      }
    }
  }
}

}  // namespace
}  // namespace attest

// Where a wrong result is wrong.
#include "harness/comparison/error_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(ErrorMap, ACellHoldsTheLargestOfItsThings) {
  ErrorGrid grid(2 * kMostCells, 3);
  ASSERT_EQ(grid.cells.size(), static_cast<std::size_t>(kMostCells));
  ASSERT_EQ(grid.cells.front().size(), 3u);
  grid.add(4, 1, 0.25);
  grid.add(5, 1, 7);
  grid.add(4, 1, 0.5);
  EXPECT_EQ(grid.cells[2][1], 7);
  EXPECT_TRUE(std::isnan(grid.cells[2][0])) << "nothing was compared there";
  grid.add(2 * kMostCells - 1, 2, kInfinity);
  EXPECT_EQ(grid.cells.back()[2], kInfinity);
}

TEST(ErrorMap, NothingIsCoveredByNothing) {
  EXPECT_TRUE(ErrorGrid(0, 5).cells.empty());
  EXPECT_TRUE(ErrorGrid(5, 0).cells.front().empty());
}

TEST(ErrorMap, ShowsTheRowsThatAreWrong) {
  // One key too many is visible to every row but the last.
  const BackendSet faulty(faulty::faulty_backends(), {"mask_off_by_one", "correct"}, {1, ""});
  const Case one = case_from_line("batch=2 heads=2 seq=5 dim=3 causal");
  PreparedCase prepared(one, faulty.all(), 1);
  for (Backend* backend : faulty.all()) EXPECT_FALSE(prepared.check(*backend).error_map) << "nobody asked for it";
  prepared.map_failures();
  for (Backend* backend : faulty.all()) {
    const Verdict verdict = prepared.check(*backend);
    if (backend->identity().name == "correct") {
      EXPECT_FALSE(verdict.error_map) << "only of what is wrong";
      continue;
    }
    ASSERT_TRUE(verdict.error_map);
    const ErrorMap& map = *verdict.error_map;
    EXPECT_EQ(map.output, "o");
    ASSERT_EQ(map.rows.cells.size(), 4u);
    EXPECT_EQ(map.rows.height, 4);
    EXPECT_EQ(map.elements.width, 3);
    double worst = 0;
    for (const auto& head : map.rows.cells) {
      ASSERT_EQ(head.size(), 5u);
      for (std::size_t query = 0; query < 5; ++query) {
        EXPECT_EQ(head[query] > 1, query < 4) << head[query];
        worst = std::max(worst, head[query]);
      }
    }
    EXPECT_EQ(worst, verdict.error_over_bound);
    // The head of the worst element, closer.
    const auto head = static_cast<std::size_t>(map.batch * 2 + map.head);
    for (std::size_t query = 0; query < 5; ++query) {
      const auto& row = map.elements.cells[query];
      EXPECT_EQ(*std::max_element(row.begin(), row.end()), map.rows.cells[head][query]);
    }
  }
}

}  // namespace
}  // namespace attest

#include "harness/run/stored_order.h"

#include <gtest/gtest.h>

#include "harness/cases/case.h"

namespace attest {
namespace {

std::vector<std::int64_t> shape_of(const std::string& line, TensorId id) {
  return StoredOrder(case_from_line(line).problem, id).shape();
}
using Shape = std::vector<std::int64_t>;

TEST(StoredOrder, FollowsTheLayoutWithoutGaps) {
  EXPECT_EQ(shape_of("batch=2 heads=3 seq=4x5 dim=6", TensorId::q), (Shape{2, 3, 4, 6}));
  EXPECT_EQ(shape_of("batch=2 heads=3 seq=4x5 dim=6 layout=blhd", TensorId::k), (Shape{2, 5, 3, 6}));
  EXPECT_EQ(shape_of("batch=2 heads=1 seq=4x5 dim=6 layout=blhd", TensorId::k), (Shape{2, 5, 1, 6}));
  EXPECT_EQ(shape_of("batch=2 heads=3 seq=6 dim=4 lengths=q:6,2/k:6,2 layout=thd gap=3", TensorId::q),
            (Shape{8, 3, 4}));
  EXPECT_EQ(shape_of("heads=3 seq=4x5 dim=6 mask=bool:11QK:random(0.5)", TensorId::mask), (Shape{1, 1, 4, 5}));
}

TEST(StoredOrder, TellsWhereRowsComeBeforeHeads) {
  const auto rows_first = [](const std::string& line, TensorId id) {
    return StoredOrder(case_from_line(line).problem, id).rows_first();
  };
  EXPECT_FALSE(rows_first("heads=3 seq=3 dim=6", TensorId::q));
  EXPECT_TRUE(rows_first("heads=3 seq=3 dim=6 layout=bld", TensorId::q));
  EXPECT_TRUE(rows_first("heads=3 seq=3 dim=6 out.layout=blhd", TensorId::out));
  EXPECT_FALSE(rows_first("heads=3 seq=3 dim=6 out.layout=blhd", TensorId::v));
  EXPECT_FALSE(rows_first("heads=3 seq=3 dim=6 layout=blhd mask=bool:1HQK:random(0.5)", TensorId::mask));
}

}  // namespace
}  // namespace attest

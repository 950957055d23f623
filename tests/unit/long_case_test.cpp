// A case that takes long says so before it starts.
#include "harness/cases/long_case.h"

#include <gtest/gtest.h>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(LongCase, IsOneOfManyMultiplyAdds) {
  const auto work = [](const char* line) { return multiply_adds_of(parse_case(line)); };
  EXPECT_EQ(work("batch=2 heads=3 seq=5x7 dim=4/6"), 2.0 * 3 * 5 * 7 * 10);
  EXPECT_LT(work("heads=8 seq=1024 dim=64"), kLongMultiplyAdds);
  EXPECT_GT(work("heads=8 seq=4096 dim=64"), kLongMultiplyAdds);
  EXPECT_LT(work("op=linear heads=8 seq=4096 dim=64"), kLongMultiplyAdds) << "no pairs of positions there";
  EXPECT_EQ(long_case_words("seq=4\x1b", 69e9),
            "attest: long case, 69 billion multiply-adds on each backend (about 69 s in plain loops on one core): "
            "seq=4\\x1b");
}

}  // namespace
}  // namespace attest

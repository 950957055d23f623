// Random cases are a function of the seed, valid, and come by every option.
#include "harness/cases/random_case.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

TEST(RandomCase, IsAFunctionOfTheSeed) {
  Random first(5), again(5), other(6);
  int same = 0;
  for (int n = 0; n < 50; ++n) {
    const std::string line = print_case(random_case(first));
    EXPECT_EQ(print_case(random_case(again)), line);
    same += print_case(random_case(other)) == line;
  }
  EXPECT_LT(same, 5);
}

TEST(RandomCase, IsACaseWithACost) {
  Random random(1);
  for (int n = 0; n < 300; ++n) {
    const Problem p = random_case(random);
    const std::string line = print_case(p);
    EXPECT_FALSE(find_fault(p)) << line;
    EXPECT_EQ(parse_case(line), p) << line;
    EXPECT_GE(random_case_cost(p), 0) << line;
  }
}

TEST(RandomCase, ComesByEveryOption) {
  Random random(2);
  std::set<std::string> met;
  for (int n = 0; n < 4000; ++n) {
    for (const Option* option : set_options(n % 4 == 0 ? random_other_case(random) : random_softmax_case(random))) {
      met.insert(option->key);
    }
  }
  for (const Option& option : options()) {
    if (option.samples.empty() && option.key.find('.') != std::string::npos) continue;  // places: drawn with strides
    EXPECT_EQ(met.contains(option.key), option.varies()) << option.key;
  }
}

TEST(RandomCase, OfAnotherOperatorIsOne) {
  Random random(3);
  std::set<Op> others;
  for (int n = 0; n < 100; ++n) {
    others.insert(random_other_case(random).call.op);
    EXPECT_EQ(random_softmax_case(random).call.op, Op::attention);
  }
  EXPECT_EQ(others.size(), values_of<Op>().size() - 1);
  EXPECT_FALSE(others.contains(Op::attention));
}

}  // namespace
}  // namespace attest

// Writes beside an output show, and elements that nobody wrote.
#include "harness/comparison/guarded_outputs.h"

#include <gtest/gtest.h>

#include <string>

#include "reference/case_line.h"

namespace attest {
namespace {

TEST(GuardedOutputs, NoticesWritesOutsideAndElementsLeftOut) {
  const Problem p = parse_case("seq=4 dim=4 out.strides=32,32,8,2");
  GuardedOutputs outputs(p);
  EXPECT_NE(outputs.inspect().find("unwritten"), std::string::npos);
  const View<float> view = outputs.views().out.as<float>();
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 4; ++c) view(0, 0, i, c) = 1;
  }
  EXPECT_EQ(outputs.inspect(), "");
  view.data[1] = 1;  // between two elements
  EXPECT_NE(outputs.inspect().find("wrote outside"), std::string::npos);
}

}  // namespace
}  // namespace attest

// The tensors of a case, from its line.
#include "harness/cases/inputs.h"

#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Inputs, DataDoNotDependOnTheLayout) {
  const Computed a("batch=2 heads=3 seq=5 dim=4"), b("batch=2 heads=3 seq=5 dim=4 layout=blhd q.offset=3");
  for (std::size_t r = 0; r < a.attention.rows.size(); ++r) EXPECT_EQ(a.row(r).output, b.row(r).output);
}

TEST(Inputs, ValuesThatTheTypeCannotHoldAreRefusedByName) {
  const std::string told = complaint([] { make_inputs(parse_case("dtype=f16 seq=4 dim=4 fill=constant(1e6)")); });
  EXPECT_NE(told.find("f16"), std::string::npos) << told;
  EXPECT_NE(told.find("65504"), std::string::npos) << told;
}

}  // namespace
}  // namespace attest

// The tensors of a case, from its line.
#include "harness/cases/inputs.h"

#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Inputs, DataDoNotDependOnTheLayout) {
  const Computed a("batch=2 heads=3 seq=5 dim=4"), b("batch=2 heads=3 seq=5 dim=4 layout=blhd q.offset=3");
  for (std::size_t r = 0; r < a.attention.rows.size(); ++r) EXPECT_EQ(a.row(r).output, b.row(r).output);
}

TEST(Inputs, ValuesThatTheTypeCannotHoldAreRefusedByName) {
  try {
    make_inputs(parse_case("dtype=f16 seq=4 dim=4 fill=constant(1e6)"));
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("f16"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("65504"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attest

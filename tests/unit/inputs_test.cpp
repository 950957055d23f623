// The tensors of a case, from its line.
#include "harness/cases/inputs.h"

#include <algorithm>
#include <cmath>

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

/// The logsumexps of a merge, in the order part, batch, head, row.
std::vector<double> part_lse(const std::string& line) {
  const Problem p = parse_case(line);
  const CaseInputs made = make_inputs(p);
  const ConstTensor lse = made.views().part_lse();
  std::vector<double> list;
  each_index(lse.shape,
             [&](auto b, auto h, auto l, auto) { list.push_back(load(lse.data, lse.dtype, lse.offset(b, h, l, 0))); });
  return list;
}

TEST(Inputs, PartsOfAMergeAreEmptyAsOftenAsAsked) {
  const std::vector<double> some = part_lse("op=merge batch=2 heads=4 seq=100 dim=1 parts=5:empty(0.3)");
  const auto empty = std::ranges::count(some, -kInfinity);
  EXPECT_NEAR(static_cast<double>(empty), 0.3 * 4000, 100);
  const std::vector<double> full = part_lse("op=merge batch=2 heads=4 seq=100 dim=1 parts=5");
  EXPECT_EQ(std::ranges::count(full, -kInfinity), 0);
  for (std::size_t n = 0; n < full.size(); ++n) {
    EXPECT_LE(std::fabs(full[n]), 4);
    EXPECT_TRUE(some[n] == -kInfinity || some[n] == full[n]) << "the others stay as they are";
  }
}

TEST(Inputs, FillsTellHowFarLogsumexpsOfPartsLieApart) {
  double squares = 0;
  for (const double lse : part_lse("op=merge heads=4 seq=100 dim=1 parts=5 fill=spread(600)")) squares += lse * lse;
  EXPECT_NEAR(std::sqrt(squares / 2000), 300, 20);
  const std::vector<double> hot = part_lse("op=merge seq=100 dim=1 parts=5 fill=onehot");
  EXPECT_EQ(std::ranges::count(hot, 128), 100);
  EXPECT_EQ(std::ranges::count(hot, 0), 400);
}

TEST(Inputs, PoisonedPartsAreTheEmptyOnes) {
  // With stride 0 the rows of all parts of a batch share their storage: a row that one part has is no NaN.
  for (const char* strides : {"", " part_o.strides=0,30,5,1"}) {
    const Problem p =
        parse_case(std::string("op=merge heads=2 seq=6 dim=5 parts=4:empty(0.5) poison=empty:o out=o,lse") + strides);
    const CaseInputs made = make_inputs(p);
    const ConstTensor o = made.views().part_o(), lse = made.views().part_lse();
    int poisoned = 0;
    each_index(o.shape, [&](auto b, auto h, auto l, auto d) {
      const bool is_nan = std::isnan(load(o.data, o.dtype, o.offset(b, h, l, d)));
      const bool is_empty = load(lse.data, lse.dtype, lse.offset(b, h, l, 0)) == -kInfinity;
      poisoned += is_nan;
      EXPECT_TRUE(is_empty || !is_nan);
      EXPECT_TRUE(*strides || is_nan == is_empty);
    });
    EXPECT_GT(poisoned, *strides ? -1 : 50);
  }
}

}  // namespace
}  // namespace attest

// A call's own sums: counts, places on the diagonal, slopes, pages, blocks.
#include "reference/call/call.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(Call, ScaleIsOneOverTheRootOfTheKeysWidth) {
  EXPECT_EQ(parse_case("seq=4 dim=64/8").scale_value(), 0.125);
  EXPECT_EQ(parse_case("seq=4 dim=64 scale=-3").scale_value(), -3);
}

TEST(Call, LengthsCountPerBatch) {
  const Problem p = parse_case("batch=2 seq=9x12 dim=4 lengths=q:9,3/k:12,7");
  EXPECT_EQ(p.query_count(1), 3);
  EXPECT_EQ(p.key_count(1), 7);
  EXPECT_EQ(p.stored_keys(1), 12);  // padding is stored
  EXPECT_EQ(parse_case("batch=2 seq=9x12 dim=4 lengths=q:9,3/k:12,7 layout=thd").stored_keys(1), 7);
  EXPECT_EQ(parse_case("batch=2 seq=9x12 dim=4 lengths=12,7 paged=4").stored_keys(1), 7);
  EXPECT_EQ(parse_case("seq=9x12 dim=4").key_count(0), 12);
}

TEST(Call, CachedKeysCountPerBatch) {
  const Problem p = parse_case("batch=3 seq=2x9 dim=4 causal past=6,4,0");
  EXPECT_EQ(p.past, 6);
  EXPECT_EQ(p.past_length(1), 4);
  EXPECT_EQ(p.diagonal_offset(1), 4);
  EXPECT_EQ(p.key_count(1), 7) << "4 cached and 3 new ones";
  EXPECT_EQ(p.stored_keys(2), 3);
  EXPECT_FALSE(p.stores_every_key());
  const Problem shorter = parse_case("batch=2 seq=2x9 dim=4 past=6,4 lengths=9,5");
  EXPECT_EQ(shorter.key_count(1), 5);
  EXPECT_EQ(shorter.stored_keys(1), 7);
  const Problem pages = parse_case("batch=2 seq=2x9 dim=4 causal past=6,4 lengths=9,6 paged=4");
  EXPECT_EQ(pages.key_count(0), 9) << "pages hold the cached keys, too";
  EXPECT_EQ(pages.key_count(1), 6);
  EXPECT_EQ(pages.diagonal_offset(1), 4);
}

TEST(Call, TheDiagonalStandsInItsCorner) {
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal align=top-left").diagonal_offset(0), 0);
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal align=bottom-right").diagonal_offset(0), 3);
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal past=3").diagonal_offset(0), 3);
  EXPECT_FALSE(parse_case("seq=2x5 dim=2").uses_diagonal());
  for (const char* line : {"causal", "window=1:inf", "window=inf:0", "alibi"}) {
    EXPECT_TRUE(parse_case("seq=4 dim=2 " + std::string(line)).uses_diagonal()) << line;
  }
}

TEST(Call, OutputsThatAreScores) {
  EXPECT_TRUE(parse_case("seq=4 dim=2 out=lse,weights").wants_scores());
  EXPECT_FALSE(parse_case("seq=4 dim=2 out=o,lse,present").wants_scores());
  EXPECT_TRUE(parse_case("seq=4 dim=2 out=lse,weights").wants(Output::lse));
  EXPECT_FALSE(parse_case("seq=4 dim=2 out=lse,weights").wants(Output::o));
}

TEST(Call, RulesHaveTheInputsThatTheyRead) {
  for (const Op op : values_of<Op>()) {
    EXPECT_EQ(traits_of(op).decay, op == Op::gated || op == Op::gated_delta) << name_of(op);
    EXPECT_EQ(traits_of(op).beta, op == Op::delta || op == Op::gated_delta) << name_of(op);
    EXPECT_NE(traits_of(op).scores, traits_of(op).state) << name_of(op);
  }
}

TEST(Call, AnOperatorWithoutATraitIsTheOneThatHasTheOthers) {
  EXPECT_EQ(operator_without(Op::gated_delta, &OperatorTraits::decay), Op::delta);
  EXPECT_EQ(operator_without(Op::gated_delta, &OperatorTraits::beta), Op::gated);
  EXPECT_EQ(operator_without(Op::gated, &OperatorTraits::decay), Op::linear);
  EXPECT_EQ(operator_without(Op::delta, &OperatorTraits::decay), std::nullopt);
  EXPECT_EQ(operator_without(Op::attention, &OperatorTraits::scores), std::nullopt);
}

TEST(Call, PagesAndBlocksAreCountedUp) {
  const Problem paged = parse_case("batch=3 seq=1x9 dim=2 lengths=9,0,4 paged=4");
  EXPECT_EQ(page_count(paged, 0), 3);
  EXPECT_EQ(page_count(paged, 1), 0);
  EXPECT_EQ(page_count(paged), 4);
  const Problem blocks = parse_case("seq=9x16 dim=2 blocks=4x8:all");
  EXPECT_EQ(block_rows(blocks), 3);
  EXPECT_EQ(block_columns(blocks), 2);
}

TEST(Call, AdditiveMasksHaveTheCallsTypeOrTheirOwn) {
  EXPECT_EQ(parse_case("dtype=f16 seq=4 dim=2 mask=add:BHQK:normal").mask_dtype(), DType::f16);
  EXPECT_EQ(parse_case("dtype=f16 seq=4 dim=2 mask=add:BHQK:normal mask.dtype=f32").mask_dtype(), DType::f32);
}

}  // namespace
}  // namespace attest

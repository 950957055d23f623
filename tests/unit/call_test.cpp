// A call's own sums: counts, places on the diagonal, slopes, pages, blocks.
#include "reference/call/call.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// "column: message" of a line that is no call.
std::string complaint_of(const std::string& line) {
  try {
    parse_case(line);
  } catch (const CaseError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
  return "";
}

TEST(Call, ScaleIsOneOverTheRootOfTheKeysWidth) {
  EXPECT_EQ(parse_case("seq=4 dim=64/8").call.scale_value(), 0.125);
  EXPECT_EQ(parse_case("seq=4 dim=64 scale=-3").call.scale_value(), -3);
}

TEST(Call, LengthsCountPerBatch) {
  const Problem p = parse_case("batch=2 seq=9x12 dim=4 lengths=q:9,3/k:12,7");
  EXPECT_EQ(p.call.query_count(1), 3);
  EXPECT_EQ(p.call.key_count(1), 7);
  EXPECT_EQ(p.call.stored_keys(1), 12);  // padding is stored
  EXPECT_EQ(parse_case("batch=2 seq=9x12 dim=4 lengths=q:9,3/k:12,7 layout=thd").call.stored_keys(1), 7);
  EXPECT_EQ(parse_case("batch=2 seq=9x12 dim=4 lengths=12,7 paged=4").call.stored_keys(1), 7);
  EXPECT_EQ(parse_case("seq=9x12 dim=4").call.key_count(0), 12);
}

TEST(Call, CachedKeysCountPerBatch) {
  const Problem p = parse_case("batch=3 seq=2x9 dim=4 causal past=6,4,0");
  EXPECT_EQ(p.call.past, 6);
  EXPECT_EQ(p.call.past_length(1), 4);
  EXPECT_EQ(p.call.diagonal_offset(1), 4);
  EXPECT_EQ(p.call.key_count(1), 7) << "4 cached and 3 new ones";
  EXPECT_EQ(p.call.stored_keys(2), 3);
  EXPECT_FALSE(p.call.stores_every_key());
  const Problem shorter = parse_case("batch=2 seq=2x9 dim=4 past=6,4 lengths=9,5");
  EXPECT_EQ(shorter.call.key_count(1), 5);
  EXPECT_EQ(shorter.call.stored_keys(1), 7);
  const Problem pages = parse_case("batch=2 seq=2x9 dim=4 causal past=6,4 lengths=9,6 paged=4");
  EXPECT_EQ(pages.call.key_count(0), 9) << "pages hold the cached keys, too";
  EXPECT_EQ(pages.call.key_count(1), 6);
  EXPECT_EQ(pages.call.diagonal_offset(1), 4);
}

TEST(Call, TheDiagonalStandsInItsCorner) {
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal align=top-left").call.diagonal_offset(0), 0);
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal align=bottom-right").call.diagonal_offset(0), 3);
  EXPECT_EQ(parse_case("seq=2x5 dim=2 causal past=3").call.diagonal_offset(0), 3);
  EXPECT_FALSE(parse_case("seq=2x5 dim=2").call.uses_diagonal());
  for (const char* line : {"causal", "window=1:inf", "window=inf:0", "alibi"}) {
    EXPECT_TRUE(parse_case("seq=4 dim=2 " + std::string(line)).call.uses_diagonal()) << line;
  }
}

TEST(Call, OutputsThatAreScores) {
  EXPECT_TRUE(parse_case("seq=4 dim=2 out=lse,weights").call.wants_scores());
  EXPECT_FALSE(parse_case("seq=4 dim=2 out=o,lse,present").call.wants_scores());
  EXPECT_TRUE(parse_case("seq=4 dim=2 out=lse,weights").call.wants(Output::lse));
  EXPECT_FALSE(parse_case("seq=4 dim=2 out=lse,weights").call.wants(Output::o));
}

TEST(Call, RulesHaveTheInputsThatTheyRead) {
  for (const Op op : values_of<Op>()) {
    EXPECT_EQ(traits_of(op).decay, op == Op::gated || op == Op::gated_delta) << name_of(op);
    EXPECT_EQ(traits_of(op).beta, op == Op::delta || op == Op::gated_delta) << name_of(op);
    EXPECT_EQ(traits_of(op).scores + traits_of(op).state + traits_of(op).parts, 1) << name_of(op);
    EXPECT_EQ(traits_of(op).tokens, op != Op::merge) << name_of(op);
    EXPECT_EQ(traits_of(op).lse, op == Op::attention || op == Op::merge) << name_of(op);
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

TEST(Call, TensorsHaveTheCallsTypeOrTheirOwn) {
  const Problem p = parse_case("dtype=bf16 seq=2x5 dim=2 past=2 out=o,lse k.dtype=f16 out.dtype=f32 lse.dtype=f16");
  EXPECT_EQ(type_of(p, TensorId::q), DType::bf16);
  EXPECT_EQ(type_of(p, TensorId::k), DType::f16);
  EXPECT_EQ(type_of(p, TensorId::past_k), DType::f16) << "as the new keys";
  EXPECT_EQ(type_of(p, TensorId::past_v), DType::bf16);
  EXPECT_EQ(type_of(p, TensorId::out), DType::f32);
  EXPECT_EQ(type_of(p, TensorId::lse), DType::f16);
  EXPECT_TRUE(has_mixed_types(p));
  // One that repeats what the tensor has anyway is not printed.
  EXPECT_EQ(print_case(parse_case("dtype=f16 seq=2 dim=2 k.dtype=f16 lse.dtype=f32 out=o,lse")),
            "dtype=f16 seq=2 dim=2 out=o,lse");
  EXPECT_FALSE(has_mixed_types(parse_case("seq=2 dim=2 mask=add:BHQK:normal mask.dtype=f64")));
}

TEST(Call, TypesThatCantBeAreRefusedAtTheirColumn) {
  EXPECT_EQ(complaint_of("seq=2 dim=2 k.dtype=f64"),
            "13: k.dtype: a call in f32 adds in f32, which can't hold inputs in f64; say dtype=f64");
  EXPECT_EQ(complaint_of("seq=2 dim=2 lse.dtype=f16"), "13: lse.dtype: there is no lse");
  EXPECT_EQ(complaint_of("seq=2 dim=2 layout=kv v.dtype=f16"),
            "13: layout: one packed tensor has one type; leave out q.dtype, k.dtype and v.dtype");
  EXPECT_EQ(complaint_of("seq=1x3 dim=2 past=2 out=o,present past_v.dtype=f16"),
            "36: past_v.dtype: out=present gives cached and new ones in one type; leave it out");
  EXPECT_EQ(complaint_of("seq=2 dim=2 k.dtype=int8"),
            "21: \"int8\" is no type; here: k.dtype=i8 (of q, k and v alone)");
  EXPECT_NO_THROW(parse_case("seq=2 dim=2 q.dtype=e5m2 k.dtype=i8 v.dtype=e4m3"));
  EXPECT_NE(complaint_of("seq=2 dim=2 dtype=e4m3"), "");
  EXPECT_NE(complaint_of("seq=2 dim=2 out.dtype=e4m3"), "");
  EXPECT_NE(complaint_of("seq=1x3 dim=2 past=2 out=o,present k.dtype=i8 past_k.dtype=i8"), "");
  EXPECT_EQ(type_of(parse_case("seq=2 dim=2 k.dtype=e4m3 pass=both out=o,dk").call, TensorId::dk), DType::f32);
  EXPECT_NO_THROW(parse_case("dtype=f64 seq=2 dim=2 k.dtype=f16 out.dtype=bf16"));
}

TEST(Call, AdditiveMasksHaveTheCallsTypeOrTheirOwn) {
  EXPECT_EQ(type_of(parse_case("dtype=f16 seq=4 dim=2 mask=add:BHQK:normal"), TensorId::mask), DType::f16);
  EXPECT_EQ(type_of(parse_case("dtype=f16 seq=4 dim=2 mask=add:BHQK:normal mask.dtype=f32"), TensorId::mask),
            DType::f32);
}

}  // namespace
}  // namespace attest

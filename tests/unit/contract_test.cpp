// A backend is told the call alone, and options younger than it are refused on its behalf.
#include <gtest/gtest.h>

#include <memory>

#include "backends/refusal.h"
#include "harness/cases/case.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// Answers with zeros, and refuses nothing by itself.
class OfContract : public Backend {
 public:
  explicit OfContract(int version) : version_(version) {}
  Identity identity() const override { return {"of_contract", "", ""}; }
  int contract() const override { return version_; }
  Arithmetic arithmetic(const Call&) const override { return {}; }
  std::unique_ptr<Plan> prepare(const Call&) override { throw BackendError("was run"); }

 private:
  int version_;
};

TEST(Contract, AnOptionThatCameLaterIsRefusedWithASentence) {
  const auto refusal = refusal_of(OfContract(0), parse_case("seq=4 dim=4 softcap=2"));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->cause, RefusalCause::younger_than_contract);
  EXPECT_TRUE(refusal->reason.starts_with("softcap: ")) << refusal->reason;
  OfContract old(0);
  const Case source = case_from_line("seq=4 dim=4 causal");
  const Verdict verdict = PreparedCase(source, {&old}, 1).check(old);
  EXPECT_EQ(verdict.status, Status::refused);
  EXPECT_EQ(verdict.cause.kind, Cause::younger_than_contract);
}

TEST(Contract, ValuesThatCameLaterAreRefused) {
  const auto refused = [](const char* line) { return refusal_of(OfContract(2), parse_case(line)).has_value(); };
  EXPECT_FALSE(refused("batch=2 seq=4 dim=4 past=2"));
  EXPECT_TRUE(refused("batch=2 seq=4 dim=4 past=2,1"));
  EXPECT_FALSE(refused("batch=2 seq=4 dim=4 paged=2"));
  EXPECT_TRUE(refused("batch=2 seq=4 dim=4 paged=2 lengths=4,4 layout=thd"));
}

TEST(Contract, GradientsOfLinearAttentionCameLater) {
  const auto refused = [](int version, const char* line) {
    return refusal_of(OfContract(version), parse_case(line)).has_value();
  };
  EXPECT_FALSE(refused(5, "pass=backward seq=4 dim=4"));
  EXPECT_FALSE(refused(5, "op=gated seq=4 dim=4 state out=o,present"));
  for (const char* line : {"op=gated pass=backward seq=4 dim=4", "op=linear pass=both seq=4 dim=4 out=o,dq"}) {
    EXPECT_TRUE(refused(5, line)) << line;
    EXPECT_FALSE(refused(6, line)) << line;
  }
}

TEST(Contract, WhatEveryCallHasAndWhatItKnowsIsNot) {
  EXPECT_FALSE(refusal_of(OfContract(0), parse_case("batch=2 heads=4/2 seq=3x5 dim=4/2 fill=ties seed=3")));
  for (const char* line : {"seq=4 dim=4 softcap=2", "op=gated seq=4 dim=4 decay=head state", "seq=4 dim=4 out=o,lse"}) {
    EXPECT_FALSE(refusal_of(OfContract(kContractVersion), parse_case(line))) << line;
  }
}

TEST(Contract, DataAreNoPartOfACall) {
  const Call plain = parse_case("seq=4 dim=4 mask=bool:11QK:random(0.5)");
  const Call other = parse_case("seq=4 dim=4 mask=bool:11QK:none fill=ties k.fill=huge poison=hidden:v seed=9");
  EXPECT_TRUE(plain == other);
}

TEST(Contract, TheSeedOfDropoutIs) {
  const Call one = parse_case("seq=4 dim=4 dropout=0.5 seed=1"), two = parse_case("seq=4 dim=4 dropout=0.5 seed=2");
  EXPECT_FALSE(one == two);
  EXPECT_EQ(two.dropout_seed, 2u);
  EXPECT_EQ(parse_case("seq=4 dim=4 seed=2").call.dropout_seed, 0u);
}

TEST(Contract, ACallHasALineOfItsOwn) {
  const Call call = parse_case("seq=4 dim=4 mask=add:11QK:neginf(0.5) blocks=2x2:none dropout=0.25 fill=ties seed=7");
  const std::string line = print_call(call);
  EXPECT_EQ(line, "seq=4 dim=4 mask=add:11QK blocks=2x2 dropout=0.25 seed=7");
  const Problem again = parse_case(line);
  EXPECT_EQ(again.call, call);
  EXPECT_EQ(print_case(again), "seq=4 dim=4 mask=add:11QK:normal blocks=2x2:all dropout=0.25 seed=7");
  EXPECT_EQ(print_call(again), line);
}

}  // namespace
}  // namespace attest

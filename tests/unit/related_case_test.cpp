// Backends held against themselves: each wrong backend breaks its relation, and its honest twin none.
#include "harness/relate/related_case.h"

#include "harness/relate/promise.h"
#include "harness/relate/relation_report.h"
#include "tests/faulty/around.h"
#include "tests/faulty/unrelated.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

RelationVerdict verdict_of(const faulty::UnrelatedBackend& one, std::string_view relation, const std::string& line) {
  const auto backend = faulty::make_unrelated(one.name), other = faulty::make_unrelated(one.name, 3);
  const Case source = case_from_line(line);
  RelatedCase related(source, 1);
  EXPECT_TRUE(related.applies(relation_named(relation))) << line << ": " << relation;
  Backend* const others[] = {other.get()};
  return related.judge(relation_named(relation), *backend, others);
}

TEST(RelatedCase, FindsWhatEachWrongBackendBreaks) {
  const faulty::UnrelatedBackend& honest = faulty::unrelated_backends().front();
  std::size_t broken = 0;
  for (const faulty::UnrelatedBackend& wrong : faulty::unrelated_backends()) {
    if (wrong.relation.empty()) continue;
    ++broken;
    const std::string line(wrong.case_line);
    const RelationVerdict verdict = verdict_of(wrong, wrong.relation, line);
    EXPECT_EQ(verdict.status, RelationStatus::fail) << wrong.name;
    EXPECT_EQ(verdict.found.outside == 0, wrong.within_bounds) << wrong.name << ": " << verdict.reason;
    EXPECT_GT(verdict.found.differing, 0) << wrong.name;
    EXPECT_NE(verdict.repro.find("--relation " + std::string(wrong.relation)), std::string::npos) << verdict.repro;
    const RelationVerdict right = verdict_of(honest, wrong.relation, line);
    EXPECT_NE(right.status, RelationStatus::fail) << wrong.name << ": " << right.reason;
    EXPECT_NE(right.status, RelationStatus::refused) << wrong.name << ": " << right.reason;
    EXPECT_GT(right.found.elements, 0) << wrong.name;
  }
  EXPECT_EQ(broken, relations().size());
}

/// The honest twin with another promise, and a result that no call gave.
class Promising : public faulty::BackendAround {
 public:
  explicit Promising(std::string promise, std::string_view name = "honest_relations")
      : BackendAround(faulty::make_unrelated(name)), promise_(std::move(promise)) {}
  Conventions conventions() const override {
    Conventions c;
    c.same_bits = promise_;
    return c;
  }

 private:
  std::string promise_;
};

RelationVerdict verdict_of(Backend& backend, std::string_view relation, const std::string& line) {
  const Case source = case_from_line(line);
  RelatedCase related(source, 1);
  return related.judge(relation_named(relation), backend, {});
}

TEST(RelatedCase, OtherBitsFailWhereTheyArePromisedAlone) {
  const std::string line = "batch=2 seq=5 dim=4";
  Promising nothing("no promise", "batch_1_reads_batch_0"), batch("repeat, batch", "batch_1_reads_batch_0");
  const RelationVerdict within = verdict_of(nothing, "batch", line), broken = verdict_of(batch, "batch", line);
  EXPECT_EQ(within.status, RelationStatus::bound);
  EXPECT_FALSE(within.promised);
  EXPECT_GT(within.found.largest->fraction(), 0);
  EXPECT_LT(within.found.largest->fraction(), 1);
  EXPECT_EQ(broken.status, RelationStatus::fail);
  EXPECT_TRUE(broken.promised);
  EXPECT_EQ(broken.found.differing, 1);
  EXPECT_EQ(broken.found.first->at, (Index4{1, 0, 0, 0}));
  EXPECT_EQ(broken.other_call, "seq=5 dim=4");
  EXPECT_EQ(verdict_of(batch, "repeat", line).status, RelationStatus::bits);
}

TEST(RelatedCase, PromisesAreProbed) {
  Promising kept("repeat, batch,head"), broken("repeat, batch", "batch_1_reads_batch_0"), unknown("everything");
  EXPECT_EQ(kept_promise(kept), "repeat, batch, head");
  EXPECT_EQ(kept_promise(broken), "repeat");
  EXPECT_EQ(kept_promise(unknown), "no promise");
}

class Refusing : public faulty::BackendAround {
 public:
  Refusing() : BackendAround(faulty::make_unrelated("honest_relations")) {}
  std::optional<Refusal> refuse(const Call& call) const override {
    if (call.packed_sequences() || call.past > 0) return Refusal{"no packed sequences"};
    return std::nullopt;
  }
};

TEST(RelatedCase, RefusedCallsAreLeftOut) {
  Refusing backend;
  const std::string line = "seq=5x9 dim=4 causal align=bottom-right";
  const RelationVerdict packing = verdict_of(backend, "packing", line), decode = verdict_of(backend, "decode", line);
  EXPECT_EQ(packing.status, RelationStatus::refused);
  EXPECT_EQ(packing.reason, "no packed sequences");
  EXPECT_EQ(decode.status, RelationStatus::bits);
  EXPECT_EQ(decode.calls, 1);  // of two: the one with cached keys is refused
  EXPECT_EQ(verdict_of(backend, "repeat", "seq=5x9 dim=4 causal past=4").status, RelationStatus::refused);
  EXPECT_EQ(verdict_of(backend, "threads", line).status, RelationStatus::refused);
}

class Throwing : public faulty::BackendAround {
 public:
  Throwing() : BackendAround(faulty::make_unrelated("honest_relations")) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    if (call.batch == 1) throw BackendError("out of luck");
    return inner_->prepare(call);
  }
};

TEST(RelatedCase, WhatIsThrownIsAFailure) {
  Throwing backend;
  const RelationVerdict verdict = verdict_of(backend, "batch", "batch=2 seq=5 dim=4");
  EXPECT_EQ(verdict.status, RelationStatus::fail);
  EXPECT_EQ(verdict.reason, "out of luck");
  EXPECT_EQ(verdict.about, "sequence 0 alone");
}

TEST(RelatedCase, NaNOnOneSideAloneFails) {
  Difference one{TensorId::out, {}, kNaN, 1, 1, 10};
  EXPECT_EQ(one.fraction(), kInfinity);
  one.whole = 2;
  EXPECT_EQ(one.fraction(), 0.1);
  one.expected = kNaN;  // data make it NaN: an infinity may stand for it, a number may not
  one.whole = kNaN;
  EXPECT_EQ(one.fraction(), kInfinity);
  one.other = kInfinity;
  EXPECT_EQ(one.fraction(), 0);
  one = {TensorId::out, {}, 2, 1, 1, kInfinity};  // the arithmetic may overflow: nothing is said
  EXPECT_EQ(one.fraction(), 0);
  EXPECT_TRUE(have_same_bits(kNaN, -kNaN));
  EXPECT_FALSE(have_same_bits(0.0, -0.0));
}

TEST(RelationReport, CountsByRelationAndBackend) {
  RelationTally tally({"a", "b"});
  RelationVerdict v;
  v.backend = "a";
  v.relation = "batch";
  v.status = RelationStatus::bits;
  tally.add(v);
  v.status = RelationStatus::bound;
  v.promised = false;
  v.found.add({TensorId::out, {}, 2, 1, 1, 4});
  tally.add(v);
  v.backend = "b";
  v.status = RelationStatus::refused;
  tally.add(v);
  EXPECT_EQ(tally.all().bits, 1u);
  EXPECT_EQ(tally.all().ran(), 2u);
  EXPECT_EQ(tally.table(TableFormat::csv), "relation,a,b\nbatch,\"1 bits, 1 bound (0.25)\",refused\n");
  const auto json = relation_to_json(v);
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["element"]["allowed"], 4);
  EXPECT_EQ(json["largest"], 0.25);
}

}  // namespace
}  // namespace attest

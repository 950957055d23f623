// Calls that are derived from others: the reference itself gives the same numbers for both, and each kind of call has
// the relations that it should have.
#include "harness/relate/relations.h"

#include <cmath>
#include <map>
#include <set>

#include "harness/cases/suites.h"
#include "harness/comparison/compare.h"
#include "harness/verdict/stated_conventions.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// What the reference gives for every element of a call, by result and place.
std::map<std::pair<TensorId, Index4>, double> reference_results(const Problem& problem, const Inputs& inputs) {
  const Expectation e = expect(problem, inputs, {{reference_arithmetic(), {}}}, 1, kInfinity);
  const GuardedOutputs none(problem);
  std::map<std::pair<TensorId, Index4>, double> results;
  each_result(problem, e, e.bounds.front(), none,
              [&](const TensorRow& row, const Index4& at, double, double expected, double) {
                results[{row.id, at}] = expected;
              });
  return results;
}

/// Held against the whole: how many elements both have. Parts of keys are no results by themselves.
std::size_t compare_with_reference(const Case& source, const Relation& relation) {
  const Problem& whole = source.problem;
  const CaseInputs made = make_inputs(whole);
  const Inputs inputs = made.views();
  const auto expected = reference_results(whole, inputs);
  std::size_t compared = 0;
  for (const Arrangement& part : relation.derive(whole, inputs)) {
    const CaseInputs own = inputs_of_part(part, whole.call, inputs);
    for (const auto& [element, value] : reference_results({part.call, whole.data}, own.views())) {
      if (!is_comparable(part, whole.call, element.first)) continue;
      const auto at = place_in_whole(part, whole.call, element.first, element.second);
      if (!at) continue;
      const double one = expected.at({element.first, *at});
      ++compared;
      if (one == value || (std::isnan(one) && std::isnan(value))) continue;
      EXPECT_NEAR(one, value, 1e-9 * std::max(1.0, std::fabs(one)))
          << source.label << " " << relation.name << ": " << print_call(part.call);
    }
  }
  return compared;
}

TEST(Relations, HoldForTheReference) {
  std::map<std::string_view, std::size_t> compared;
  for (const Case& source : load_suite(find_suite("relations"))) {
    if (dense_multiply_adds(source.problem) > (kSanitized ? 4e5 : 2e6)) continue;
    for (const Relation& relation : relations()) {
      if (relation.kind == RelationKind::calls) compared[relation.name] += compare_with_reference(source, relation);
    }
  }
  for (const auto& [name, count] : compared) EXPECT_GT(count, 400u) << name;
  EXPECT_EQ(compared.size(), 8u);
}

std::set<std::string> relations_of(const std::string& line) {
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  std::set<std::string> names;
  for (const Relation& one : relations()) {
    if (one.derive && !one.derive(p, inputs.views()).empty()) names.emplace(one.name);
  }
  return names;
}

TEST(Relations, ApplyWhereTheyMeanSomething) {
  using Names = std::set<std::string>;
  EXPECT_EQ(relations_of("batch=2 heads=2 seq=8x20 dim=4"),
            (Names{"batch", "head", "decode", "chunks", "packing", "paging", "key_order", "key_splits"}));
  EXPECT_EQ(relations_of("seq=1x20 dim=4 causal align=bottom-right"), (Names{"packing", "paging"}));
  EXPECT_EQ(relations_of("seq=8x20 dim=4 causal past=12 paged=4"), (Names{"decode", "chunks", "packing", "pages"}));
  EXPECT_EQ(relations_of("seq=8 dim=4 dropout=0.5"), (Names{"chunks", "packing", "paging"}));
  EXPECT_EQ(relations_of("seq=8 dim=4 segments=3,5"), (Names{"packing", "paging"}));
  EXPECT_EQ(relations_of("seq=8x20 dim=4 blocks=16x8:random(0.5)"),
            (Names{"decode", "packing", "paging", "key_splits"}));
  EXPECT_EQ(relations_of("op=delta batch=2 heads=2 seq=8 dim=4"), (Names{"batch", "head", "packing"}));
  EXPECT_EQ(relations_of("pass=both heads=4/2 seq=8x20 dim=4"), (Names{"head", "packing", "paging", "key_order"}));
  EXPECT_EQ(relations_of("pass=both heads=4/1 seq=8 dim=4 causal"), (Names{"packing", "paging"}));
}

TEST(Relations, PiecesOfQueriesCoverEachQuery) {
  for (const char* line : {"seq=2 dim=4", "seq=9x30 dim=4 causal align=bottom-right", "seq=33 dim=4 blocks=8x8:all"}) {
    const Problem p = parse_case(line);
    const CaseInputs inputs = make_inputs(p);
    std::set<std::int64_t> queries;
    for (const Arrangement& part : relation_named("chunks").derive(p, inputs.views())) {
      EXPECT_LT(part.call.query_length, p.call.query_length);
      for (std::int64_t i = 0; i < part.call.query_length; ++i) queries.insert(part.first_query[0] + i);
    }
    EXPECT_EQ(std::ssize(queries), p.call.query_length) << line;
  }
}

TEST(Relations, SumsOverLessAreNotCompared) {
  const Problem p =
      parse_case("pass=both batch=2 heads=2 seq=4 dim=4 mask=add:1HQK:normal sinks out=o,dk,dmask,dsinks");
  const CaseInputs inputs = make_inputs(p);
  const Arrangement one = relation_named("batch").derive(p, inputs.views()).front();
  EXPECT_TRUE(is_comparable(one, p, TensorId::out));
  EXPECT_TRUE(is_comparable(one, p, TensorId::dk));
  EXPECT_FALSE(is_comparable(one, p, TensorId::dmask));
  EXPECT_FALSE(is_comparable(one, p, TensorId::dsinks));
  const Arrangement head = relation_named("head").derive(p, inputs.views()).front();
  EXPECT_TRUE(is_comparable(head, p, TensorId::dmask));
  EXPECT_TRUE(is_comparable(head, p, TensorId::dsinks));
}

TEST(Relations, HaveNames) {
  EXPECT_EQ(&relation_named("repeat"), &relations().front());
  EXPECT_NE(complaint([] { relation_named("chunk"); }).find("nearest: chunks"), std::string::npos);
  for (const Relation& one : relations())
    EXPECT_EQ(is_convention_value("same_bits", one.name), one.keeps_sums) << one.name;
}

}  // namespace
}  // namespace attest

// Wrong results told by the mistake that gives them: each mistake of the deliberately wrong backends, and no other.
#include "harness/verdict/known_mistakes.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/comparison/compare.h"
#include "harness/run/case_lists.h"
#include "harness/search/shrink_case.h"
#include "reference/operators/operator.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Each backend of tests/faulty whose mistake is one of the table's, and which one it is.
const std::map<std::string, std::string> kDiagnoses = {
    {"mask_off_by_one", "causal_one_key_more"},
    {"missing_scale", "scale_left_out"},
    {"scale_by_dim", "scale_by_dim"},
    {"heads_tiled", "heads_interleaved"},
    {"wrong_corner", "other_corner"},
    {"tail_keys_counted", "keys_padded_to_32"},
    {"ignored_mask", "mask_ignored"},
    {"window_ignored_without_mask", "window_ignored"},
    {"right_zero_is_unbounded", "window_right_ignored"},
    {"window_off_by_one", "window_left_one_less"},
    {"lse_in_base_2", "lse_in_base_2"},
    {"lse_plus_infinity", "lse_of_empty_row_inf"},
    {"scale_ignored_when_given", "given_scale_ignored"},
    {"all_zeros", "zeros"},
    {"cap_after_mask", "softcap_after_bias"},
    {"mask_by_key_head", "mask_by_key_head"},
    {"softcap_dropped", "softcap_ignored"},
    {"decay_dropped", "decay_ignored"},
    {"delta_dropped", "delta_ignored"},
    {"state_dropped", "state_ignored"},
    {"alibi_dropped", "alibi_ignored"},
    {"alibi_for_powers_of_two", "alibi_of_power_of_two"},
    {"alibi_heads_reversed", "alibi_reversed"},
    {"sinks_dropped", "sinks_ignored"},
    {"sink_of_head_0", "sink_of_first_head"},
    {"key_lengths_dropped", "key_lengths_ignored"},
    {"query_lengths_dropped", "query_lengths_ignored"},
    {"anchor_ignores_lengths", "corner_of_full_lengths"},
    {"segments_dropped", "segments_ignored"},
    {"prefix_dropped", "prefix_ignored"},
    {"prefix_off_by_one", "prefix_one_less"},
    {"blocks_dropped", "blocks_ignored"},
    {"blocks_of_head_0", "blocks_of_first_head"},
    {"dropout_dropped", "dropout_ignored"},
    {"dropout_of_another_seed", "dropout_of_next_seed"},
    {"past_has_no_offset", "past_without_offset"},
    {"pages_in_order", "pages_in_order"},
    {"causal_dropped", "causal_ignored"},
    {"window_dropped", "window_ignored"},
    {"window_a_key_short", "window_left_one_less"},
    {"corner_swapped", "other_corner"},
    {"mask_dropped", "mask_ignored"},
    {"given_scale_dropped", "given_scale_ignored"},
    {"packed_heads_share_keys", "first_key_head_of_keys"},
    {"causal_lost_with_weights", "causal_ignored"},
    {"sink_by_key_head", "sink_by_key_head"},
    {"sink_capped", "sink_capped"},
    {"alibi_without_offset", "alibi_without_offset"},
    {"last_key_dropped", "last_key_unseen"},
    {"backward_drops_dlse", "dlse_ignored"},
    {"backward_without_delta", "delta_forgotten"},
    {"backward_scale_twice", "dk_scaled_twice"},
    {"backward_mean_of_group", "gradients_averaged_over_group"},
    {"backward_mask_of_first_batch", "dmask_averaged"},
    {"backward_swaps_dk_dv", "dk_and_dv_swapped"},
};

constexpr std::size_t kEnough = 12;  ///< failures that are told, of each backend

std::vector<Case> cases_of(const std::vector<std::string>& suites) {
  std::vector<Case> cases;
  for (CaseList& list : load_cases({suites, {}, {}})) {
    for (Case& one : list.cases) cases.push_back(std::move(one));
  }
  return cases;
}

TEST(KnownMistakes, NameWhatAFaultyBackendDoesInMostOfItsFailures) {
  const std::vector<Case> cases = cases_of({"smoke", "bugs"});
  const std::vector<Case> linear = cases_of({"linear"});
  for (const auto& [name, mistake] : kDiagnoses) {
    const BackendSet set(faulty::faulty_backends(), {name}, {1, ""});
    Backend& backend = *set.all().front();
    const bool of_linear = mistake == "decay_ignored" || mistake == "delta_ignored" || mistake == "state_ignored";
    std::size_t failed = 0, named = 0, others = 0;
    for (const Case& source : of_linear ? linear : cases) {
      if (source.from_file || dense_multiply_adds(source.problem) > 2e5) continue;
      if (named + others == kEnough) break;
      const Verdict verdict = diagnose_line(source, backend, 1);
      if (!is_failure(verdict)) {
        EXPECT_TRUE(verdict.mistakes.empty()) << verdict.case_line;
        continue;
      }
      ++failed;
      if (verdict.mistakes.empty()) continue;
      const bool found = std::find(verdict.mistakes.begin(), verdict.mistakes.end(), mistake) != verdict.mistakes.end();
      ++(found ? named : others);
      EXPECT_NE(verdict.reason.find("the output is what one gets with "), std::string::npos) << verdict.reason;
    }
    EXPECT_GT(named, 0u) << name << " of " << failed;
    EXPECT_LE(others, named) << name;
  }
}

TEST(KnownMistakes, AreNotNamedOfAnotherMistake) {
  // No row of the table is any of these: nothing may be said of them.
  const std::vector<Case> cases = cases_of({"smoke"});
  for (const char* name : {"weights_in_half", "scale_a_little_off", "rounded_to_bf16", "last_feature_zero"}) {
    const BackendSet set(faulty::faulty_backends(), {name}, {1, ""});
    std::size_t failed = 0;
    for (const Case& source : cases) {
      if (source.from_file || dense_multiply_adds(source.problem) > 2e5) continue;
      if (source.problem.call.value_dim == 1) continue;  // of one feature nothing is left: those are zeros
      const Verdict verdict = diagnose_line(source, *set.all().front(), 1);
      failed += is_failure(verdict);
      EXPECT_TRUE(verdict.mistakes.empty()) << name << ": " << verdict.case_line << ": " << verdict.reason;
    }
    EXPECT_GT(failed, 0u) << name;
  }
}

TEST(KnownMistakes, AreNamedOnceAndInWords) {
  std::set<std::string_view> names, texts;
  for (const KnownMistake& mistake : known_mistakes()) {
    EXPECT_TRUE(names.insert(mistake.name).second) << mistake.name;
    EXPECT_TRUE(texts.insert(mistake.text).second) << mistake.text;
    EXPECT_TRUE(mistake.change || mistake.change_results) << mistake.name;
  }
  EXPECT_EQ(mistakes_text({}), "");
  EXPECT_EQ(mistakes_text({"causal_ignored"}), "the output is what one gets with causal ignored");
  EXPECT_EQ(mistakes_text({"causal_ignored", "mask_ignored"}),
            "the output is what one gets with causal ignored, or with the mask ignored");
  EXPECT_EQ(mistakes_text({"causal_ignored", "mask_ignored", "zeros", "alibi_ignored"}).find("ALiBi"),
            std::string::npos);
}

/// Many failures of one backend have one reason: it is found for each of them, also beyond those for which the whole
/// table is tried.
TEST(KnownMistakes, AreFoundAgainAndAgain) {
  const BackendSet set(faulty::faulty_backends(), {"missing_scale"}, {1, ""});
  MistakeFinder finder;
  for (int n = 0; n < 200; ++n) {
    const Case source = case_from_line("seq=3x4 dim=" + std::to_string(4 + n));
    PreparedCase prepared(source, {set.all().front()}, 1);
    prepared.diagnose_failures([&](const std::string&) -> MistakeFinder& { return finder; });
    const Verdict verdict = prepared.check(*set.all().front());
    ASSERT_TRUE(is_failure(verdict));
    EXPECT_EQ(verdict.mistakes, std::vector<std::string>{"scale_left_out"}) << verdict.case_line;
  }
}

/// A hidden NaN that is multiplied by 0 looks like any mistake that shows its key.
TEST(KnownMistakes, AreNotFoundInNaNs) {
  const BackendSet set(faulty::faulty_backends(), {"hidden_nan_leaks"}, {1, ""});
  const Case source = case_from_line("seq=4x9 dim=4 causal align=top-left poison=hidden:kv");
  PreparedCase prepared(source, {set.all().front()}, 1);
  prepared.diagnose_failures();
  const Verdict verdict = prepared.check(*set.all().front());
  EXPECT_EQ(verdict.cause.kind, Cause::not_finite) << verdict.reason;
  EXPECT_TRUE(verdict.mistakes.empty()) << verdict.reason;
}

/// Results of mistakes that no faulty backend makes, as the reference gives them.
TEST(KnownMistakes, AreFoundInWhatTheReferenceGivesWithThem) {
  const std::pair<std::string, const char*> list[] = {
      {"causal_one_key_less", "seq=5x6 dim=4 causal align=top-left"},
      {"causal_reversed", "seq=5x6 dim=4 causal align=top-left"},
      {"scale_by_value_dim", "seq=5x6 dim=4/9"},
      {"scale_twice", "seq=5x6 dim=4"},
      {"scale_negated", "seq=5x6 dim=4"},
      {"window_left_one_more", "seq=9 dim=4 window=2:1"},
      {"window_right_one_less", "seq=9 dim=4 window=2:1"},
      {"window_right_one_more", "seq=9 dim=4 window=2:1"},
      {"window_left_ignored", "seq=9 dim=4 window=2:1"},
      {"window_sides_swapped", "seq=9 dim=4 window=3:1"},
      {"prefix_one_more", "seq=9 dim=4 causal prefix=3"},
      {"first_key_head", "heads=4/2 seq=5 dim=4"},
      {"key_heads_reversed", "heads=4/2 seq=5 dim=4"},
      {"first_sequence", "batch=2 seq=5 dim=4"},
      {"softcap_without_division", "seq=5 dim=4 softcap=2"},
      {"mask_inverted", "seq=5x6 dim=4 mask=bool:11QK:random(0.5)"},
      {"mask_before_scale", "seq=5x6 dim=4 mask=add:11QK:normal"},
      {"mask_added_twice", "seq=5x6 dim=4 mask=add:11QK:normal"},
      {"mask_negated", "seq=5x6 dim=4 mask=add:11QK:normal"},
      {"mask_of_first_head", "heads=2 seq=5x6 dim=4 mask=add:1HQK:normal"},
      {"mask_of_first_sequence", "batch=2 seq=5x6 dim=4 mask=add:B1QK:normal"},
      {"mask_of_first_row", "seq=5x6 dim=4 mask=add:11QK:normal"},
      {"mask_transposed", "seq=5 dim=4 mask=add:11QK:normal"},
      {"alibi_of_next_head", "heads=3 seq=5 dim=4 alibi"},
      {"alibi_of_head_before", "heads=3 seq=5 dim=4 alibi"},
      {"alibi_of_first_head", "heads=3 seq=5 dim=4 alibi"},
      {"alibi_by_key_head", "heads=4/2 seq=5 dim=4 alibi"},
      {"alibi_negated", "heads=3 seq=5 dim=4 alibi"},
      {"sinks_reversed", "heads=3 seq=5 dim=4 sinks=1,2,3"},
      {"lengths_of_first_sequence", "batch=2 seq=5 dim=4 lengths=2,4"},
      {"lengths_ignored", "batch=2 seq=5 dim=4 lengths=q:2,4/k:3,4"},
      {"dropout_not_scaled", "seq=5x9 dim=4 dropout=0.5"},
      {"dropout_scaled_alone", "seq=5x9 dim=4 dropout=0.5"},
      {"first_key_unseen", "seq=5x6 dim=4"},
      {"keys_padded_to_16", "seq=5x6 dim=4"},
      {"keys_padded_to_64", "seq=5x40 dim=4"},
      {"keys_padded_to_128", "seq=5x100 dim=4"},
      {"keys_reversed", "seq=5x6 dim=4 causal align=top-left"},
      {"keys_and_values_swapped", "seq=5x6 dim=4"},
      {"queries_and_keys_swapped", "seq=5 dim=4"},
      {"base_2_of_scores", "seq=5x6 dim=4"},
      {"mean_of_values", "seq=5x6 dim=4"},
      {"rows_transposed", "heads=3 seq=5x6 dim=4"},
      {"rows_transposed", "heads=3 seq=5x6 dim=4 layout=blhd"},
      {"lse_of_empty_row_zero", "seq=4 dim=4 mask=bool:11QK:none out=o,lse"},
  };
  for (const auto& [name, line] : list) {
    const Problem p = parse_case(line);
    const CaseInputs data = make_inputs(p);
    const Producer producer{Arithmetic(), {}};
    const std::string& wanted = name;
    const auto mistake = std::find_if(known_mistakes().begin(), known_mistakes().end(),
                                      [&](const KnownMistake& m) { return m.name == wanted; });
    ASSERT_NE(mistake, known_mistakes().end()) << name;
    const Expectation e = expect_mistaken(*mistake, p, data.views(), producer, 1);
    ASSERT_FALSE(e.rows.empty()) << name;
    GuardedOutputs outputs(p);
    const Outputs views = outputs.views();
    for (std::size_t r = 0; r < e.rows.size(); ++r) {
      const auto [b, h, i] = e.rows[r];
      for (std::int64_t c = 0; c < p.call.value_dim; ++c) {
        store(views.out().data, views.out().dtype, views.out().offset(b, h, i, c),
              e.of(TensorId::out)[r * static_cast<std::size_t>(p.call.value_dim) + static_cast<std::size_t>(c)]);
      }
      if (views.lse())
        store(views.lse()->data, views.lse()->dtype, views.lse()->offset(b, h, i, 0), e.of(TensorId::lse)[r]);
    }
    const Expectation right = expect(p, data.views(), {producer}, 1);
    const Comparison comparison = compare_outputs(p, right, right.bounds.front(), outputs);
    ASSERT_TRUE(comparison.failed()) << name << " changes nothing of " << line;
    const std::vector<std::string> found =
        mistakes_that_give(p, data.views(), producer, outputs, *comparison.worst(), 1);
    EXPECT_NE(std::find(found.begin(), found.end(), name), found.end()) << name << ": " << mistakes_text(found);
    EXPECT_LE(found.size(), 4u) << name << ": " << mistakes_text(found);
  }
}

}  // namespace
}  // namespace attest

// Fuzzing: wrong backends are found and their failures told apart; a correct one is left in peace; a seed repeats
// itself.
#include "harness/search/fuzz.h"

#include "harness/cases/random_case.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

FuzzResult run(const std::string& name, std::uint64_t count, std::uint64_t seed) {
  const BackendSet backends(faulty::faulty_backends(), {name}, {1, ""});
  FuzzSettings settings;
  settings.seconds = 120;
  settings.count = count;
  settings.seed = seed;
  settings.max_operations = 2e5;
  return fuzz(*backends.all().front(), settings, [](const FuzzResult&) {});
}

/// `align` is none of its own: lengths that differ ask for it.
std::size_t options_of_call(Call call) {
  call.align = Align::top_left;
  call.key_length = call.query_length;
  return set_options(call).size();
}

TEST(Fuzz, FindsMistakesAndMakesThemSmall) {
  for (const char* name : {"mask_off_by_one", "missing_scale", "wrong_corner", "ignored_mask", "sinks_dropped",
                           "softcap_dropped", "decay_dropped"}) {
    const FuzzResult result = run(name, 400, 1);
    ASSERT_FALSE(result.findings.empty()) << name;
    EXPECT_GT(result.failed, 0u) << name;
    for (const Finding& finding : result.findings) {
      EXPECT_TRUE(is_failure(finding.small.verdict)) << name;
      const Problem& small = finding.small.source.problem;
      const Problem first = parse_case(finding.failure.case_line);
      EXPECT_LE(random_case_cost(small), random_case_cost(first)) << name << ": " << finding.small.source.label;
      EXPECT_LE(options_of_call(small), options_of_call(first)) << name << ": " << finding.small.source.label;
    }
  }
}

TEST(Fuzz, ACorrectBackendIsLeftInPeace) {
  const FuzzResult result = run("correct", 400, 2);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_GT(result.pass, 20u);
  EXPECT_LE(result.closest, 1);
  EXPECT_GT(result.pairs.size(), 100u);
}

TEST(Fuzz, ASeedRepeatsItself) {
  const FuzzResult a = run("ignored_mask", 150, 5), b = run("ignored_mask", 150, 5);
  EXPECT_EQ(a.failed, b.failed);
  EXPECT_EQ(a.closest_case, b.closest_case);
  EXPECT_EQ(a.pairs, b.pairs);
  ASSERT_EQ(a.findings.size(), b.findings.size());
  int finished = 0;
  for (std::size_t n = 0; n < a.findings.size(); ++n) {
    const ShrunkCase &one = a.findings[n].small, &other = b.findings[n].small;
    if (!one.finished || !other.finished) continue;  // out of time, as on a slow machine
    EXPECT_EQ(one.source.label, other.source.label);
    ++finished;
  }
  EXPECT_GT(finished, 0);
}

TEST(Fuzz, CoveredClassesAreNamed) {
  EXPECT_TRUE(covered_classes(parse_case("seq=4 dim=4")).empty());
  EXPECT_EQ(covered_classes(parse_case("dtype=f16 seq=4x8 dim=4 causal align=bottom-right out=o,lse")),
            (std::vector<std::string>{"dtype=f16", "Lq < Lk", "causal", "align=bottom-right", "out=lse"}));
}

}  // namespace
}  // namespace attest

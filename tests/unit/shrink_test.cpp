// Shrinking: thirty failures of deliberately wrong backends become cases that a person can compute by hand.
#include "harness/search/shrink.h"

#include <map>

#include "harness/cases/suites.h"
#include "harness/search/shrink_case.h"
#include "reference/operators/operator.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Shrink, CandidatesAreValidCanonicalAndDifferent) {
  for (const char* suite : {"smoke", "linear"}) {
    for (const Case& source : load_suite(find_suite(suite))) {
      for (const Problem& p : simpler_problems(source.problem)) {
        const std::string line = print_case(p);
        EXPECT_EQ(print_case(parse_case(line)), line);
        EXPECT_NE(line, source.label);
      }
    }
  }
}

TEST(Shrink, FindsTheTwoSizesThatMatter) {
  // "Fails" when more than 3 keys meet more than 1 query under a window: nothing else may stay.
  const auto fails = [](const Call& p) {
    return p.key_length > 3 && p.query_length > 1 && p.window_left != Call::kUnbounded;
  };
  const Problem start = parse_case(
      "dtype=f16 batch=3 heads=6/2 seq=33x65 dim=40/8 scale=-0.3 causal align=bottom-right window=15:7 softcap=3 "
      "lengths=65,9,0 mask=add:BHQK:normal sinks out=o,lse,weights layout=blhd fill=huge poison=hidden:kv seed=77");
  const Shrunk result = shrink(start, fails, [] { return true; });
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(print_case(result.problem), "seq=2x4 dim=1 align=top-left window=0:inf fill=constant(1)");
}

TEST(Shrink, StopsWhenToldTo) {
  int left = 3;
  const Shrunk result = shrink(
      parse_case("batch=2 heads=4/2 seq=64x33 dim=64 scale=1 causal align=top-left"),
      [](const Problem&) { return true; }, [&] { return left-- > 0; });
  EXPECT_FALSE(result.finished);
  EXPECT_GT(result.tried, 0);
  EXPECT_LE(result.tried, 3);  // it is asked before a candidate is made, too
}

/// The first case line of the suites on which each mistake fails, every time it is asked.
std::map<std::string, Case> failures(const BackendSet& backends, std::size_t max_cases) {
  std::map<std::string, Case> found;
  for (const char* suite : {"linear", "matrix"}) {
    for (const Case& source : load_suite(find_suite(suite))) {
      std::vector<Backend*> left;
      for (Backend* backend : backends.all()) {
        if (!found.contains(backend->identity().name)) left.push_back(backend);
      }
      const PreparedCase prepared(source, left, 2);
      for (Backend* backend : left) {
        const auto fails = [&] { return prepared.check(*backend).status == Status::fail; };
        if (fails() && fails() && fails()) found.emplace(backend->identity().name, source);
        if (found.size() == max_cases) return found;
      }
    }
  }
  return found;
}

TEST(Shrink, ThirtyFailuresBecomeSmall) {
  const BackendSet backends(faulty::faulty_backends(), {}, {1, ""});
  // A sanitizer looks at the searching, not at how small every line becomes, and takes ten times as long.
  constexpr std::size_t kFailures = kSanitized ? 7 : 31;
  const std::map<std::string, Case> found = failures(backends, kFailures);
  ASSERT_EQ(found.size(), kFailures);
  int one_head = 0;  // mistakes about heads need two of them
  for (Backend* backend : backends.all()) {
    const auto one = found.find(backend->identity().name);
    if (one == found.end()) continue;
    const ShrunkCase first = shrink_case(one->second, *backend, 1, 60);
    const Problem& p = first.source.problem;
    EXPECT_EQ(first.verdict.status, Status::fail);
    EXPECT_TRUE(first.finished);
    std::printf("%-28s %5.2f s %4d  %s\n", one->first.c_str(), first.seconds, first.tried, first.source.label.c_str());
    one_head += p.call.query_heads == 1;
    // One mistake lies in the second tile of 32 keys and can't be smaller.
    const std::int64_t max_length = one->first == "band_start_nan" ? 33 : 4;
    if (one->first.ends_with("_large")) {  // right up to 20,000 multiply-adds
      EXPECT_LT(dense_multiply_adds(p), 40'000) << one->first << ": " << first.source.label;
    } else {
      EXPECT_LE(p.call.query_length, max_length) << one->first << ": " << first.source.label;
      EXPECT_LE(p.call.key_length, max_length) << one->first << ": " << first.source.label;
    }
    // Each try costs milliseconds: this keeps a search under 5 s without timing it on a shared machine.
    EXPECT_LT(first.tried, 500) << one->first;
    // No option and no size is left that isn't needed to fail so, and a second search ends at the same line.
    for (const Problem& simpler : simpler_problems(p)) {
      const Verdict verdict = check_line(case_from_line(print_case(simpler)), *backend, 1);
      EXPECT_FALSE(is_failure(verdict) && verdict.cause.text() == first.verdict.cause.text())
          << one->first << ": " << print_case(simpler);
    }
    EXPECT_EQ(shrink_case(one->second, *backend, 1, 60).source.label, first.source.label);
  }
  EXPECT_GE(one_head, static_cast<int>(kFailures) - 5);
}

}  // namespace
}  // namespace attest

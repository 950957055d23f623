#include "tests/mutants/conditional_score.h"

#include <fmt/format.h>

#include <cstdio>

#include "harness/base/stopwatch.h"
#include "harness/base/terminal.h"
#include "harness/cases/suites.h"
#include "tests/mutants/conditional.h"

namespace attest::mutants {
namespace {

std::vector<MutantSet> make_sets(const ConditionalSettings& settings, Mistakes& mistakes) {
  std::vector<MutantSet> sets;
  const std::vector<std::string>& keys = settings.options;
  const MutantKind singles{false, settings.gradients, {keys.begin(), keys.end()}},
      pairs{true, singles.gradients, singles.options};
  for (const MutantKind& kind : {singles, pairs})
    sets.push_back(class_mutants(kind, settings.sample, settings.seed, mistakes));
  for (const MutantKind& kind : {singles, pairs})
    sets.push_back(random_mutants(kind, settings.sample, settings.seed + (kind.pairs ? 1 : 0), mistakes));
  return sets;
}

Judge judge_of(const std::vector<MutantSet>& sets, Mistakes& mistakes) {
  std::vector<const ConditionalMutant*> all;
  for (const MutantSet& set : sets) {
    for (const ConditionalMutant& mutant : set.mutants) all.push_back(&mutant);
  }
  return {mistakes, std::move(all)};
}

void print_row(const std::string& name, std::size_t cases, const std::vector<MutantSet>& sets, const Judge& judge,
               double seconds) {
  fmt::print("{:<14} {:>7}", name, cases);
  for (const MutantSet& set : sets) {
    std::size_t alive = 0;
    for (const ConditionalMutant* mutant : judge.alive()) {
      alive += mutant >= set.mutants.data() && mutant < set.mutants.data() + set.mutants.size();
    }
    const std::size_t all = set.mutants.size(), caught = all - alive;
    fmt::print(" {:>9}/{:<5} {:>6.2f}%", caught, all,
               all == 0 ? 100.0 : 100.0 * static_cast<double>(caught) / static_cast<double>(all));
  }
  fmt::print(" {:>8.1f}\n", seconds);
  std::fflush(stdout);
}

}  // namespace

void score_conditional(const ConditionalSettings& settings) {
  Mistakes mistakes;
  std::vector<MutantSet> sets;
  const double seconds = timed([&] { sets = make_sets(settings, mistakes); });
  fmt::print("Mistakes of example that are made only where a condition, or two, hold; made in {:.0f} s, seed {}\n",
             seconds, settings.seed);
  for (const MutantSet& set : sets) {
    fmt::print("  {}: {} mutants, {} conditions left out: no case was found on which a mistake shows\n", set.name,
               set.mutants.size(), set.without_witness);
  }
  fmt::print("\n{:<14} {:>7}", "caught by", "cases");
  for (const MutantSet& set : sets) fmt::print(" {:>23}", set.name);
  fmt::print(" {:>8}\n", "seconds");
  Judge judge = judge_of(sets, mistakes);
  for (const std::string& suite : settings.suites) {
    const std::vector<Case> cases = load_suite(find_suite(suite));
    const double took = timed([&] {
      ProgressLine line;
      for (std::size_t n = 0; n < cases.size(); ++n) {
        line.draw({suite, "cases", n, cases.size(), 0, {}, {}});
        judge.look_at(cases[n]);
      }
    });
    print_row(suite == settings.suites.front() ? suite : "and " + suite, cases.size(), sets, judge, took);
  }
  if (!settings.verbose) return;
  for (const ConditionalMutant* mutant : judge.alive()) {
    fmt::print("  survived: {} where {}; shown by {}\n", mutant->mistake, mutant->predicate.text(), mutant->witness);
  }
}

}  // namespace attest::mutants

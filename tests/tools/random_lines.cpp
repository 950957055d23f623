// Prints random case lines over everything that this version computes, a function of the seed alone.
//
//   random_lines COUNT SEED             lines at random, for false-alarm runs
//   random_lines COUNT SEED pairwise    lines chosen so that every pair of choices meets: how matrix.cases was made
//   random_lines COUNT SEED linear      the same for linear attention alone: how linear.cases was made
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "harness/cases/random_case.h"
#include "reference/case_line.h"

int main(int argc, char** argv) {
  using namespace attest;
  const std::string mode = argc == 4 ? argv[3] : "";
  if (argc < 3 || argc > 4 || (argc == 4 && mode != "pairwise" && mode != "linear")) {
    std::fprintf(stderr, "usage: random_lines COUNT SEED [pairwise|linear]\n");
    return 2;
  }
  const std::size_t count = std::strtoull(argv[1], nullptr, 10);
  Random random(std::strtoull(argv[2], nullptr, 10));
  const bool pairwise = argc == 4;
  std::set<std::string> printed;
  std::set<std::vector<int>> pairs;
  const auto pairs_of = [](const std::vector<int>& c) {
    std::vector<std::vector<int>> list;
    for (std::size_t a = 0; a < c.size(); ++a) {
      for (std::size_t b = a + 1; b < c.size(); ++b) {
        list.push_back({static_cast<int>(a), c[a], static_cast<int>(b), c[b]});
      }
    }
    return list;
  };
  while (printed.size() < count) {
    Candidate best;
    std::size_t best_new = 0;
    for (int tries = 0; tries < (pairwise ? 40 : 1); ++tries) {
      const bool linear = mode == "linear" || (mode.empty() && random.below(16) == 0);
      Candidate c = linear ? random_linear_case(random) : random_softmax_case(random);
      // A line should cost a moment: 4 million multiply-adds at most.
      if (random_case_cost(c.problem) > 4e6) continue;
      std::size_t fresh = 1;
      if (pairwise) {
        for (const auto& pair : pairs_of(c.choices)) fresh += !pairs.contains(pair);
      }
      if (fresh > best_new) {
        best_new = fresh;
        best = std::move(c);
      }
    }
    if (best_new == 0) continue;
    const std::string line = print_case(best.problem);
    if (!printed.insert(line).second) continue;
    for (const auto& pair : pairs_of(best.choices)) pairs.insert(pair);
    std::printf("%s\n", line.c_str());
  }
  if (pairwise) std::fprintf(stderr, "%zu pairs of choices met\n", pairs.size());
}

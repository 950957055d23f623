// Prints random case lines over everything that this version computes, a function of the seed alone.
//
//   random_lines COUNT SEED             lines at random, for false-alarm runs
//   random_lines COUNT SEED pairwise    lines chosen so that many pairs of options with their values meet
//   random_lines COUNT SEED others      the same for the operators but softmax attention
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "harness/cases/random_case.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

int main(int argc, char** argv) {
  using namespace attest;
  const std::string mode = argc == 4 ? argv[3] : "";
  if (argc < 3 || argc > 4 || (argc == 4 && mode != "pairwise" && mode != "others")) {
    std::fprintf(stderr, "usage: random_lines COUNT SEED [pairwise|others]\n");
    return 2;
  }
  const std::size_t count = std::strtoull(argv[1], nullptr, 10);
  Random random(std::strtoull(argv[2], nullptr, 10));
  const bool pairwise = argc == 4;
  std::set<std::string> printed;
  std::set<std::string> pairs;
  const auto pairs_of = [](const Problem& problem) {
    std::vector<std::string> tokens, list;
    for (const Option* option : set_options(problem)) tokens.push_back(token_of(*option, problem));
    for (std::size_t a = 0; a < tokens.size(); ++a) {
      for (std::size_t b = a + 1; b < tokens.size(); ++b) list.push_back(tokens[a] + " " + tokens[b]);
    }
    return list;
  };
  while (printed.size() < count) {
    Problem best;
    std::size_t best_new = 0;
    for (int tries = 0; tries < (pairwise ? 40 : 1); ++tries) {
      Problem c = mode == "others" ? random_other_case(random)
                  : mode.empty()   ? random_case(random)
                                   : random_softmax_case(random);
      // A line should cost a moment: 4 million multiply-adds at most.
      if (random_case_cost(c) > 4e6) continue;
      std::size_t fresh = 1;
      if (pairwise) {
        for (const auto& pair : pairs_of(c)) fresh += !pairs.contains(pair);
      }
      if (fresh > best_new) {
        best_new = fresh;
        best = std::move(c);
      }
    }
    if (best_new == 0) continue;
    const std::string line = print_case(best);
    if (!printed.insert(line).second) continue;
    for (const auto& pair : pairs_of(best)) pairs.insert(pair);
    std::printf("%s\n", line.c_str());
  }
  if (pairwise) std::fprintf(stderr, "%zu pairs of options with their values met\n", pairs.size());
}

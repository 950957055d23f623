// emulate COUNT SEED [PROBE_EVERY]: the emulator on COUNT random lines, each with an arithmetic of its own that is
// declared as it is, a fourth of them with scales of codes and a sum that is stated; the declaration of every so
// many-th line is probed, too (default 5; 0: none). Prints every accusation (by a bound, by the second tier, by a
// probe) and at last how many there were. Exit code 1 when there was one, 2 for a wrong request.
//
// emulate again: the lines and declarations of accusations by a bound, as they were printed, from standard input.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string_view>

#include "harness/cases/case.h"
#include "harness/cases/random_case.h"
#include "reference/arithmetic/rounding.h"
#include "reference/options/case_line.h"
#include "tests/emulator/accusations.h"
#include "tests/emulator/declarations.h"

namespace {

using namespace attest;
using namespace attest::emulator;

int again() {
  constexpr std::string_view kIndent = "    ";
  long accusations = 0, lines = 0;
  std::string line;
  for (std::string text; std::getline(std::cin, text);) {
    if (!text.starts_with(kIndent)) continue;
    text.erase(0, kIndent.size());
    if (text.find('{') == std::string::npos) {
      line = text;
      continue;
    }
    const Accusations found = accuse(emulated_from(text), line, false);
    for (const std::string& accusation : found.list) std::printf("%s\n", accusation.c_str());
    accusations += static_cast<long>(found.list.size());
    ++lines;
  }
  std::printf("%ld lines, %ld accusations\n", lines, accusations);
  return accusations > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "again") return again();
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: emulate COUNT SEED [PROBE_EVERY] | emulate again <ACCUSATIONS\n");
    return 2;
  }
  const long count = std::atol(argv[1]), probe_every = argc == 4 ? std::atol(argv[3]) : 5;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a long run tells what it has found so far
  Random random(std::strtoull(argv[2], nullptr, 10));
  std::map<std::string, long> statuses;
  long accusations = 0, probed = 0;
  for (long n = 0; n < count;) {
    const Problem problem = random_softmax_case(random);
    if (random_case_cost(problem) > kLineCost) continue;
    const bool of_scales = n % 4 == 3;  // with a sum that is stated
    if (of_scales && !problem.call.has_stored_scales()) continue;
    Emulated emulated = random_declaration(random, problem.call.dtype);
    while (of_scales && !sums_otherwise(emulated.does)) emulated = random_declaration(random, problem.call.dtype);
    const bool probe = probe_every > 0 && n % probe_every == 0;
    const Accusations found = accuse(emulated, print_case(problem), probe);
    statuses[std::string(name_of(emulated.behaviour)) + " " + found.status + (of_scales ? ", scales" : "")] += 1;
    probed += probe;
    for (const std::string& accusation : found.list) std::printf("%s\n", accusation.c_str());
    accusations += static_cast<long>(found.list.size());
    ++n;
  }
  for (const auto& [status, lines] : statuses) std::printf("%-30s %ld\n", status.c_str(), lines);
  std::printf("%ld lines, %ld declarations probed, %ld accusations\n", count, probed, accusations);
  return accusations > 0;
}

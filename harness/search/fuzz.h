// Random cases against one backend until time or count run out; failures are made small and told apart by cause.
//
// Half of the cases are made for classes of values, and pairs of them, that no case has met yet
// (harness/cases/coverage.h); a quarter is drawn anew; the others are neighbours of those that came closest to their
// bound, what storage explains aside: a size one larger or smaller or beyond the next threshold, another fill, an
// option less. A case may cost 2, 4, ... 32 times the usual, each half as often as the one before: every size gets the
// same share of the work. The sequence is a function of the seed and of what the backend answers.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/coverage.h"
#include "harness/search/shrink_case.h"
#include "harness/verdict/verdict.h"

namespace attest {

struct FuzzSettings {
  double seconds = 60;
  std::uint64_t count = 0;  ///< cases; 0: as many as there is time for
  double budget = 0;        ///< multiply-adds of all cases together; 0: as many as there is time for
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<Problem> always;        ///< every case has the options of one of these; sizes don't count
  std::uint64_t part = 0, parts = 1;  ///< aims at this part of the classes and pairs, from 0, with draws of its own
  double max_operations = 4e6;        ///< of the reference, for one case
  MakeFresh fresh{};                  ///< failures are run again in a fresh backend, if there is one
};

struct Finding {
  Verdict failure;   ///< the first of its kind
  ShrunkCase small;  ///< the smallest case that still fails
  int count = 1;     ///< failures that look alike
};

struct FuzzResult {
  std::uint64_t cases = 0, pass = 0, refused = 0, inconclusive = 0, failed = 0;
  std::vector<Finding> findings;
  std::set<std::string> options;                                       ///< met at all
  std::map<std::pair<std::string, std::string>, std::uint64_t> pairs;  ///< met together, and how often
  std::set<ClassPair> classes;  ///< of the table of options, met; one with itself: alone
  double closest = 0;           ///< largest error/bound of a passing case
  std::string closest_case;
};

/// A problem with these options, for `always`: "k.dtype=i8 v.dtype=i8". Throws UserError where a word is none.
Problem with_always(const std::string& words);

/// Counts a finding, or adds to one that looks alike: with the same cause, and a small case of the same kind.
void add_finding(std::vector<Finding>& findings, Finding found);

/// The smallest cases as lines of a file for --suite-file, each once and with its own cause behind it; before one that
/// fails after another, that other.
void write_findings(std::ostream& out, const std::vector<Finding>& findings);

/// What a problem covers beyond the textbook, by the table of options: "causal", "dtype=f16", "Lq < Lk", ...
std::vector<std::string> covered_classes(const Problem& problem);

/// `progress` is told the result so far, after each case.
FuzzResult fuzz(Backend& backend, const FuzzSettings& settings, const std::function<void(const FuzzResult&)>& progress);

}  // namespace attest

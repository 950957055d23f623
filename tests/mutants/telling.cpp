#include "tests/mutants/telling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "harness/cases/class_cases.h"
#include "harness/cases/random_case.h"
#include "harness/cases/suites.h"
#include "reference/case_line.h"
#include "tests/mutants/conditional.h"

namespace attest::mutants {
namespace {

constexpr CaseLimits kSmall = {2e7, 64.0 * (1 << 20)};  ///< as of a mutant's witness
constexpr int kTries = 3;                               ///< likewise
constexpr int kMoreClasses = 12;                        ///< tried beside those that a case is made for

using MistakeSet = std::uint64_t;  ///< a bit for each

/// Which mistakes show on some case in two classes.
class Shown {
 public:
  explicit Shown(Mistakes& mistakes)
      : mistakes_(mistakes),
        names_(mistakes.names()),
        size_(classes_of_table().size()),
        by_pair_(size_ * size_, 0),
        candidates_(size_ * size_, 0) {}

  /// The mistakes that show on this case.
  MistakeSet of(const Case& source, MistakeSet asked) const {
    std::set<std::string> wanted;
    for (std::size_t n = 0; n < names_.size(); ++n) {
      if ((asked >> n & 1) != 0) wanted.insert(names_[n]);
    }
    const std::set<std::string> caught = mistakes_.caught(wanted, source);
    MistakeSet shown = 0;
    for (std::size_t n = 0; n < names_.size(); ++n) {
      if (caught.contains(names_[n])) shown |= MistakeSet{1} << n;
    }
    return shown;
  }

  /// Counts a case for all its classes.
  void look_at(const Case& source) {
    const std::vector<std::size_t> classes = classes_of(source.problem);
    MistakeSet open = 0;
    for (std::size_t a : classes) {
      for (std::size_t b : classes) open |= missing(a, b);
    }
    const MistakeSet shown = open == 0 ? 0 : of(source, open);
    for (std::size_t a : classes) {
      for (std::size_t b : classes) by_pair_[a * size_ + b] |= shown;
    }
  }

  /// Those that may matter in both classes and show on no case so far.
  MistakeSet missing(std::size_t a, std::size_t b) { return candidates(a, b) & ~by_pair_[a * size_ + b]; }

 private:
  MistakeSet candidates(std::size_t a, std::size_t b) {
    MistakeSet& known = candidates_[a * size_ + b];
    if (known == 0) {
      const std::vector<std::string> matter = mistakes_.candidates({{class_condition(a), class_condition(b)}});
      for (std::size_t n = 0; n < names_.size(); ++n) {
        if (std::find(matter.begin(), matter.end(), names_[n]) != matter.end()) known |= MistakeSet{1} << n;
      }
    }
    return known;
  }

  Mistakes& mistakes_;
  std::vector<std::string> names_;
  std::size_t size_;
  std::vector<MistakeSet> by_pair_, candidates_;
};

class Writer {
 public:
  Writer(Shown& shown, std::uint64_t seed) : shown_(shown), random_(seed) {}

  void show(std::size_t a, std::size_t b, MistakeSet mistake) {
    const std::vector<std::size_t> classes = a == b ? std::vector{a} : std::vector{a, b};
    for (int n = 0; n < kTries; ++n) {
      std::optional<Problem> p = case_in(classes, kSmall, random_, 8);
      if (!p || !shows(*p, mistake)) continue;
      widen(*p, classes, mistake);
      const Case made = case_from_line(print_case(*p));
      std::printf("%s\n", made.label.c_str());
      shown_.look_at(made);
      ++lines_;
      return;
    }
    ++given_up_;
  }

  std::size_t lines() const { return lines_; }
  std::size_t given_up() const { return given_up_; }

 private:
  bool shows(const Problem& p, MistakeSet mistake) const {
    return shown_.of(case_from_line(print_case(p)), mistake) != 0;
  }

  /// Moves the case into more classes in which the mistake is missing, as long as it still shows.
  void widen(Problem& p, std::vector<std::size_t> kept, MistakeSet mistake) {
    const CaseLimits beside = {std::min(kSmall.multiply_adds, std::max(1e5, 1.5 * random_case_cost(p))), kSmall.bytes};
    for (int n = 0; n < kMoreClasses; ++n) {
      const std::vector<std::size_t> now = classes_of(p);
      std::size_t chosen = 0, most = 0;
      for (int draw = 0; draw < 10; ++draw) {
        const std::size_t c = random_.below(classes_of_table().size());
        const auto gain = static_cast<std::size_t>(std::count_if(
            now.begin(), now.end(), [&](std::size_t x) { return (shown_.missing(c, x) & mistake) != 0; }));
        if (gain > most && std::find(now.begin(), now.end(), c) == now.end()) {
          most = gain;
          chosen = c;
        }
      }
      if (most == 0) continue;
      const std::optional<Problem> next = moved_into(p, chosen, kept, beside, random_);
      if (!next || !shows(*next, mistake)) continue;
      p = *next;
      kept.push_back(chosen);
    }
  }

  Shown& shown_;
  Random random_;
  std::size_t lines_ = 0, given_up_ = 0;
};

}  // namespace

void print_telling(bool pairs, const std::vector<std::string>& suites, std::uint64_t seed) {
  Mistakes mistakes;
  Shown shown(mistakes);
  for (const std::string& suite : suites) {
    for (const Case& one : load_suite(find_suite(suite))) shown.look_at(one);
    fmt::print(stderr, "{}: what its cases show is known\n", suite);
  }
  std::vector<ClassPair> targets;
  for (std::size_t n = 0; n < classes_of_table().size(); ++n) targets.emplace_back(n, n);
  if (pairs) {
    const std::vector<ClassPair> all = all_pairs();
    targets.insert(targets.end(), all.begin(), all.end());
  }
  std::size_t open = 0;
  const auto missing = [&](const ClassPair& t) {
    return why_impossible(t.first, t.second) ? 0 : shown.missing(t.first, t.second);
  };
  for (const ClassPair& t : targets) open += static_cast<std::size_t>(__builtin_popcountll(missing(t)));
  fmt::print(stderr, "{} classes or pairs, {} mistakes in them that no case of the suites shows\n", targets.size(),
             open);
  Writer writer(shown, seed);
  for (const ClassPair& t : targets) {
    for (MistakeSet left = missing(t); left != 0; left &= left - 1) {
      const MistakeSet mistake = left & -left;
      if ((missing(t) & mistake) != 0) writer.show(t.first, t.second, mistake);
    }
  }
  fmt::print(stderr, "{} cases, {} that no case of {} tries shows\n", writer.lines(), writer.given_up(), kTries);
}

}  // namespace attest::mutants

// What the verdicts of a run come to, by backend and by reason: what the console and the summary for CI tell.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/table.h"
#include "harness/base/terminal.h"
#include "harness/report/report.h"

namespace attest {

/// What the columns of the table mean, a line each: for help and manual.
inline constexpr const char* kColumnsOfCheck =
    R"(  pass         every element within its bound
  convention   not as attest does it, and as the backend states (shown where there are any)
  weak         within its bounds, but most bounds of a result are as large as the values (shown where there are any)
  fail         an element is wrong, or suspect without a waiver; crashes and time-outs, too
  refused      the backend says that it doesn't do this, and why
  inconclusive   bounds too wide to prove anything: neither right nor wrong
  waived       suspect, but listed with the reason why that is right (shown where there are any)
  error/bound  the largest error of the cases that don't fail, as a fraction of what rounding can explain:
               up to 1 is right; the case stands behind it)";

/// The first line of a summary: is it right?
struct Answer {
  Severity severity = Severity::good;
  std::string word;  ///< "right", "wrong", "nothing proved", "interrupted"
  std::string rest;  ///< who, and how many verdicts of each kind, in the table's words
  std::string text() const { return word + ": " + rest; }
};

/// Cases with one thing in common, in the order in which they came.
struct CaseGroup {
  std::string name;  ///< "backend: cause or reason"
  std::vector<std::string> cases;
};

class RunTally {
 public:
  void add(const Verdict& verdict);
  void add_small(const Verdict& failure, const Verdict& small) { small_[group_of(failure)].push_back(small); }

  std::size_t verdicts() const { return verdicts_; }
  const Counts& counts() const { return counts_; }
  /// The largest error/bound of all, failures among them.
  std::optional<double> worst() const { return worst_; }

  Answer answer(const Ending& ending, std::size_t problems) const;
  /// Backends that refused most of their cases: little is known of them.
  std::vector<std::string> refusers() const;
  /// A row for each backend; a column more where something is waived. Cases longer than `longest` are cut.
  Table backends(std::size_t longest = std::string::npos) const;
  /// Medians and tails of the largest error/bound of each case within its bounds, and errors of o in units in the last
  /// place, over suites with enough cases for them to say
  /// something.
  Table distributions() const;
  /// Bits that came out again, and the first case where they didn't, cut as above; without rows where nobody asked.
  Table bits(std::size_t longest = std::string::npos) const;

  struct Failures {
    std::string name;               ///< "backend: cause"
    std::vector<Verdict> verdicts;  ///< at least one
    std::vector<Verdict> small;     ///< the smallest found that fail like them
  };
  std::vector<Failures> failures() const;
  /// What failing cases have in common with known mistakes: of each backend those that give most of them.
  std::vector<std::string> likenesses() const;
  void add_right_if(const RightIfTold& told) { right_if_.push_back(told); }
  const std::vector<RightIfTold>& right_if() const { return right_if_; }
  /// Passed, with most bounds of a result as large as its values.
  std::vector<CaseGroup> weak() const { return groups(weak_); }
  /// Right by what their backends state.
  std::vector<CaseGroup> convention() const { return groups(convention_); }
  std::vector<CaseGroup> refused() const { return groups(refused_); }
  std::vector<CaseGroup> inconclusive() const { return groups(inconclusive_); }
  /// Suspect cases that are right by their waivers.
  std::vector<CaseGroup> waived() const { return groups(waived_); }

 private:
  struct Line {
    Counts counts;
    std::optional<double> worst;
    std::string worst_case;
  };
  struct Fact {
    std::size_t same = 0, asked = 0;
    std::string first_other;  ///< the first case with other bits
  };
  using Groups = std::map<std::string, std::vector<std::string>>;

  static std::string group_of(const Verdict& v) { return v.backend + ": " + v.cause.text(); }
  static std::vector<CaseGroup> groups(const Groups& map);
  void count_fact(const Verdict& v, const std::string& name, const std::optional<bool>& same);

  std::size_t verdicts_ = 0;
  Counts counts_;
  std::optional<double> worst_;
  std::map<std::string, Line> lines_;
  std::map<std::string, std::vector<Verdict>> failures_, small_;
  Groups refused_, inconclusive_, waived_, convention_, weak_;
  std::vector<RightIfTold> right_if_;
  std::map<std::pair<std::string, std::string>, Fact> facts_;  ///< by backend and question
  /// Of the cases of a suite, backend and type that are within their bounds.
  struct Distribution {
    std::vector<double> error_over_bound, median_ulps;
    double largest_ulps = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Distribution> distributions_;
};

}  // namespace attest

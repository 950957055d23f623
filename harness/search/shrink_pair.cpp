// The smallest two cases the second of which fails after the first.
#include <set>
#include <string>

#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"
#include "harness/search/search_budget.h"
#include "harness/search/shrink.h"
#include "harness/search/shrink_case.h"
#include "harness/verdict/long_repro.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

struct Pair {
  Problem earlier, later;
};

/// Which of the two a step is taken by.
enum class Whose { both, earlier, later };

class PairShrinker {
 public:
  PairShrinker(Pair failing, int threads, const MakeFresh& fresh, SearchBudget& time)
      : now_(std::move(failing)), threads_(threads), fresh_(fresh), time_(time) {}

  ShrunkCase run() {
    tried_.insert(fingerprint_of(now_));
    bool smaller = true;
    while (smaller && finished_) {
      // What both have goes first: it is what they are mistaken for one another by.
      smaller = smaller_by(now_.later, Whose::both) || smaller_by(now_.earlier, Whose::both) ||
                smaller_by(now_.earlier, Whose::earlier) || smaller_by(now_.later, Whose::later);
    }
    ShrunkCase result;
    result.source = case_from_line(print_case(now_.later));
    result.verdict = verdict_;
    result.tried = count_;
    result.finished = finished_;
    return result;
  }

  /// The later one's verdict after the earlier, if it is a failure that it isn't by itself.
  bool fails(const Pair& pair) {
    const Case earlier = case_from_line(print_case(pair.earlier)), later = case_from_line(print_case(pair.later));
    Verdict verdict;
    const bool wrong = check_fails([&] { return verdict = check(&earlier, later); });
    if (!wrong || check_fails([&] { return check(nullptr, later); })) return false;
    verdict.cause = {Cause::after_another_case};
    verdict.after = earlier.label;
    verdict.reason = "right by itself, wrong after '" + earlier.label + "': " + verdict.reason;
    verdict.repro = repro_after(earlier, later, verdict.repro);
    verdict_ = std::move(verdict);
    return true;
  }

 private:
  Verdict check(const Case* earlier, const Case& later) const {
    const std::unique_ptr<Backend> backend = made_fresh(fresh_);
    if (!backend) throw UserError("no fresh worker is to be had");
    const PreparedCase prepared(later, {backend.get()}, threads_);
    if (earlier) meet(*backend, *earlier);
    return prepared.check(*backend);
  }

  static std::string fingerprint_of(const Pair& pair) {
    Fingerprint fingerprint;
    fingerprint.add(print_case(pair.earlier) + '\n' + print_case(pair.later));
    return fingerprint.text();
  }

  /// Takes the first of this problem's simplifications with which the pair still fails.
  bool smaller_by(const Problem& of, Whose whose) {
    bool smaller = false;
    const Problem from = of;  // which is about to change
    each_simplification(from, [&](const Simplification& change) {
      finished_ = time_.left();
      if (!finished_) return false;
      Pair candidate = now_;
      const auto apply = [&](Problem& problem) {
        std::optional<Problem> simpler = simplified(problem, change);
        if (simpler) problem = std::move(*simpler);
        return simpler.has_value();
      };
      const bool earlier = whose != Whose::later && apply(candidate.earlier);
      const bool later = whose != Whose::earlier && apply(candidate.later);
      if (!earlier && !later) return true;
      if (!tried_.insert(fingerprint_of(candidate)).second) return true;
      time_.count();
      ++count_;
      if (!fails(candidate)) return true;
      now_ = std::move(candidate);
      smaller = true;
      return false;
    });
    return smaller;
  }

  Pair now_;
  const int threads_;
  const MakeFresh& fresh_;
  SearchBudget& time_;
  std::set<std::string> tried_;
  Verdict verdict_;
  int count_ = 0;
  bool finished_ = true;
};

}  // namespace

ShrunkCase shrink_pair(const Case& earlier, const Case& source, int threads, double budget, const MakeFresh& fresh,
                       const ShrinkProgress& progress) {
  SearchBudget time(budget, progress);
  PairShrinker shrinker({earlier.problem, source.problem}, threads, fresh, time);
  if (!shrinker.fails({earlier.problem, source.problem})) {
    ShrunkCase same;
    same.source = source;
    same.verdict.case_line = source.label;
    same.verdict.status = Status::pass;
    same.finished = false;
    return same;
  }
  ShrunkCase shrunk = shrinker.run();
  shrunk.seconds = time.spent();
  keep_long_lines(shrunk.verdict);
  return shrunk;
}

}  // namespace attest

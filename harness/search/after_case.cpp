#include "harness/search/after_case.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <tuple>

#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"
#include "harness/verdict/answers.h"
#include "harness/verdict/state_check.h"

namespace attest {
namespace {

constexpr std::size_t kMostRemembered = 4096;
constexpr std::size_t kMostAlike = 16;
constexpr double kRepeatSeconds = 2;

/// What keeps something beyond its plans finds it again by the sizes, if by anything.
bool same_sizes(const Call& a, const Call& b) {
  const auto sizes = [](const Call& c) {
    return std::tuple(c.op, c.batch, c.query_heads, c.key_heads, c.query_length, c.key_length, c.key_dim, c.value_dim);
  };
  return sizes(a) == sizes(b);
}

/// None where there is no fresh backend to be had, or where it refuses the case.
Repeats repeat_alone(const PreparedCase& prepared, const MakeFresh& fresh, int most) {
  Repeats repeats;
  const Stopwatch spent;
  while (repeats.runs < most && !interrupted && (repeats.runs == 0 || spent.seconds() < kRepeatSeconds)) {
    const std::optional<Verdict> alone = check_after({}, prepared, fresh);
    if (!alone || alone->status == Status::refused) break;
    ++repeats.runs;
    repeats.wrong += is_failure(*alone);
  }
  return repeats;
}

/// Looks for the one case after which another is wrong.
class Culprit {
 public:
  Culprit(const PreparedCase& prepared, const MakeFresh& fresh, double seconds)
      : prepared_(prepared), fresh_(fresh), seconds_(seconds) {}

  const Case* among(std::span<const Case* const> earlier) const {
    EarlierCases alike;
    for (const Case* one : earlier) {
      if (same_sizes(one->problem, prepared_.problem())) alike.push_back(one);
    }
    const std::span<const Case* const> last(alike);
    const Case* found = in_the_last(last.last(std::min(last.size(), kMostAlike)));
    return found ? found : in_the_last(earlier);
  }

 private:
  bool go_on() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return !interrupted && spent.count() < seconds_;
  }

  bool wrong_after(std::span<const Case* const> earlier) const {
    const std::optional<Verdict> verdict = check_after(earlier, prepared_, fresh_);
    return verdict && is_failure(*verdict);
  }

  /// More and more of them from the end on, until it is wrong; then the first of those that it takes.
  const Case* in_the_last(std::span<const Case* const> earlier) const {
    for (std::size_t count = std::min<std::size_t>(1, earlier.size()); count > 0 && go_on();) {
      const std::span<const Case* const> last = earlier.last(count);
      if (wrong_after(last)) return first_that_it_takes(last);
      if (count == earlier.size()) break;
      count = std::min(4 * count, earlier.size());
    }
    return nullptr;
  }

  const Case* first_that_it_takes(std::span<const Case* const> cases) const {
    std::size_t wrong = 0, right = cases.size();  // with those from here on
    while (right - wrong > 1) {
      if (!go_on()) return nullptr;
      const std::size_t middle = wrong + (right - wrong) / 2;
      (wrong_after(cases.subspan(middle)) ? wrong : right) = middle;
    }
    const bool alone = wrong + 1 == cases.size() || wrong_after(cases.subspan(wrong, 1));
    return alone ? cases[wrong] : nullptr;
  }

  const PreparedCase& prepared_;
  const MakeFresh& fresh_;
  const double seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void remember_case(EarlierCases& earlier, const Case& source) {
  if (earlier.size() >= kMostRemembered) earlier.erase(earlier.begin());
  earlier.push_back(&source);
}

void meet(Backend& backend, const Case& source) {
  const Problem& p = source.problem;
  try {
    if (ask(backend, p).refusal) return;
    const CaseInputs made = source.inputs ? CaseInputs() : make_inputs(p);
    GuardedOutputs outputs(p);
    StateCheck state(backend, p, source.inputs ? *source.inputs : made, state_steps(p));
    state.execute(outputs);
    if (state_steps(p).interleaved) state.execute_in_another_thread(outputs);
  } catch (...) {
    return;  // its own verdict said so
  }
}

std::unique_ptr<Backend> made_fresh(const MakeFresh& fresh) {
  try {
    return fresh ? fresh() : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::optional<Verdict> check_after(std::span<const Case* const> earlier, const PreparedCase& prepared,
                                   const MakeFresh& fresh) {
  const std::unique_ptr<Backend> backend = made_fresh(fresh);
  if (!backend) return std::nullopt;
  for (const Case* one : earlier) meet(*backend, *one);
  return prepared.check(*backend);
}

void find_origin(Verdict& verdict, const PreparedCase& prepared, std::span<const Case* const> earlier,
                 const MakeFresh& fresh, const OriginSearch& search) {
  const Repeats alone = repeat_alone(prepared, fresh, search.repeats);
  if (alone.wrong == alone.runs) return;
  const std::string reason = verdict.reason;
  if (alone.wrong > 0) {
    // A crash is one, however seldom; so is a hang.
    if (verdict.status != Status::crashed && verdict.status != Status::timeout) {
      verdict.status = Status::flaky;
      verdict.cause = {Cause::not_every_time};
    }
    verdict.repeats = {alone.wrong + 1, alone.runs + 1};
    verdict.reason = verdict.repeats->text() + " of this case, each by itself: " + reason;
    return;
  }
  const Case* culprit = Culprit(prepared, fresh, search.seconds).among(earlier);
  if (!culprit) {
    verdict.cause = {Cause::fresh_worker_only};
    verdict.reason =
        "right in a fresh worker, wrong in this run, and no single case of it is found after which it is "
        "wrong again: " +
        reason;
    return;
  }
  verdict.cause = {Cause::after_another_case};
  verdict.after = culprit->label;
  verdict.reason = "right by itself, wrong after '" + culprit->label + "': " + reason;
  verdict.repro = repro_after(*culprit, prepared.source(), verdict.repro);
}

}  // namespace attest

#include "harness/speed/studies/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backends/refusal.h"
#include "harness/backends/isolation/isolated_backend.h"
#include "harness/base/interrupted.h"
#include "harness/tuning/parameters.h"
#include "harness/verdict/verdict.h"

namespace attest {
namespace {

using Values = std::vector<std::int64_t>;

/// A backend under values of its own and a name that says so: samples are told apart by their names.
class Variant : public Backend, public StandsFor {
 public:
  Variant(std::unique_ptr<Backend> backend, const Values& values) : inner_(std::move(backend)) {
    try {
      inner_->tune(values);
    } catch (const CaseFault&) {  // in a process of its own; whoever times it meets the same and says why
    }
    const Tuning tuning = inner_->tuning();
    name_ = inner_->identity().name;
    for (std::size_t n = 0; n < values.size(); ++n)
      name_ += fmt::format(" {}={}", tuning.parameters[n].name, values[n]);
  }

  Identity identity() const override {
    Identity identity = inner_->identity();
    identity.name = name_;
    return identity;
  }
  const Backend& backend() const override { return *inner_; }
  int contract() const override { return inner_->contract(); }
  std::optional<Refusal> refuse(const Call& call) const override { return inner_->refuse(call); }
  Arithmetic arithmetic(const Call& call) const override { return inner_->arithmetic(call); }
  Conventions conventions() const override { return inner_->conventions(); }
  std::unique_ptr<Plan> prepare(const Call& call) override { return inner_->prepare(call); }

 private:
  std::unique_ptr<Backend> inner_;
  std::string name_;
};

class Tuner {
 public:
  Tuner(const std::function<std::unique_ptr<Backend>()>& make, const std::vector<Case>& cases, const Roof& roof,
        const BenchSettings& settings, const std::function<void(const TuneStep&)>& told)
      : make_(make), roof_(roof), settings_(settings), told_(told) {
    const std::unique_ptr<Backend> backend = make_();
    result_.tuning = backend->tuning();
    for (const Case& one : cases) {
      if (const auto refusal = refusal_of(*backend, one.problem)) {
        refused_ = NoSpeedReason{NoSpeed::refused, "refused: " + refusal->reason}.on(one.label);
        continue;
      }
      cases_.push_back(one);
      result_.cases.push_back(one.label);
    }
  }

  TuneResult result() {
    const Values standard = standard_values(result_.tuning);
    Values best = standard;
    if (cases_.empty()) result_.wrong = refused_;
    for (int round = 0; round < 2 && result_.wrong.empty(); ++round) {
      const Values before = best;
      for (std::size_t n = 0; n < best.size() && result_.wrong.empty(); ++n) best = vary(best, n);
      if (best == before) break;
    }
    if (result_.wrong.empty() && best != standard) hold_against(standard, best);
    const RatioInterval& ratio = result_.ratio;
    const bool faster =
        result_.wrong.empty() && ratio.ratio <= 1 - kLeastGain && ratio.high < 1 && ratio.confidence >= kTuneConfidence;
    for (std::size_t n = 0; n < best.size(); ++n) {
      result_.tuning.parameters[n].value = faster ? best[n] : standard[n];
    }
    return std::move(result_);
  }

 private:
  /// Every case timed under each list of values.
  std::vector<BenchCase> timed(const std::vector<Values>& variants) const {
    std::vector<std::unique_ptr<Variant>> backends;
    std::vector<Backend*> pointers;
    for (const Values& values : variants) {
      backends.push_back(std::make_unique<Variant>(make_(), values));
      pointers.push_back(backends.back().get());
    }
    std::vector<BenchCase> results;
    for (const Case& one : cases_) {
      if (!interrupted) results.push_back(bench_case(one, pointers, roof_, settings_));
    }
    return results;
  }

  /// Whether the first variant, which is in use, got a speed everywhere: without one there is nothing to compare with.
  bool first_is_right(const std::vector<BenchCase>& results) {
    for (const BenchCase& one : results) {
      const NoSpeedReason& wrong = one.lines.front().wrong;
      if (result_.wrong.empty() && !wrong.empty()) result_.wrong = wrong.on(one.case_line);
    }
    if (interrupted) result_.wrong = {NoSpeed::ended_by_user, "interrupted"};
    return result_.wrong.empty();
  }

  /// Tries every choice of one parameter, the others as they are.
  Values vary(const Values& now, std::size_t parameter) {
    const Parameter& p = result_.tuning.parameters[parameter];
    std::vector<Values> variants = {now};
    for (const std::int64_t choice : p.choices) {
      if (choice == now[parameter]) continue;
      variants.push_back(now);
      variants.back()[parameter] = choice;
    }
    if (variants.size() == 1) return now;
    const std::vector<BenchCase> results = timed(variants);
    if (!first_is_right(results)) return now;
    std::size_t best = 0;
    double least = 1 - kLeastGain;
    std::vector<TuneStep> steps;
    for (std::size_t n = 1; n < variants.size(); ++n) {
      steps.push_back({p.name, variants[n][parameter], 1, {}, false});
      TuneStep& step = steps.back();
      double sum = 0;
      for (const BenchCase& one : results) {
        const BenchLine& line = one.lines[n];
        if (!line.wrong.empty()) {
          step.wrong = line.wrong.on(one.case_line);
          break;
        }
        sum += std::log(line.median() / one.lines.front().median());
      }
      if (!step.wrong.empty()) continue;
      step.ratio = std::exp(sum / static_cast<double>(results.size()));
      if (step.ratio > least) continue;
      least = step.ratio;
      best = n;
    }
    for (std::size_t n = 1; n < variants.size(); ++n) {
      TuneStep& step = steps[n - 1];
      step.taken = n == best;
      if (told_) told_(step);
      result_.steps.push_back(step);
    }
    return variants[best];
  }

  void hold_against(const Values& standard, const Values& chosen) {
    const std::vector<BenchCase> results = timed({standard, chosen});
    if (!first_is_right(results)) return;
    std::vector<double> standard_times, chosen_times;  // of all cases, each in units of its standard time
    for (const BenchCase& one : results) {
      const BenchLine &before = one.lines[0], &now = one.lines[1];
      if (!now.wrong.empty()) {
        result_.wrong = now.wrong.on(one.case_line);
        return;
      }
      result_.speeds.push_back(
          {one.case_line, before.median(), now.median(), compare_samples(before.seconds, now.seconds, kConfidence)});
      for (const double seconds : before.seconds) standard_times.push_back(seconds / before.median());
      for (const double seconds : now.seconds) chosen_times.push_back(seconds / before.median());
    }
    result_.ratio = compare_samples(standard_times, chosen_times, kTuneConfidence);
  }

  const std::function<std::unique_ptr<Backend>()>& make_;
  const Roof& roof_;
  const BenchSettings& settings_;
  const std::function<void(const TuneStep&)>& told_;
  std::vector<Case> cases_;  ///< that are not refused
  NoSpeedReason refused_;    ///< of the last that is
  TuneResult result_;
};

}  // namespace

TuneResult tune(const std::function<std::unique_ptr<Backend>()>& make, const std::vector<Case>& cases, const Roof& roof,
                const BenchSettings& settings, const std::function<void(const TuneStep&)>& told) {
  return Tuner(make, cases, roof, settings, told).result();
}

}  // namespace attest

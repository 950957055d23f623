#include "harness/verdict/plan_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <sstream>

#include "backends/refusal.h"
#include "harness/base/user_error.h"
#include "harness/cases/other_data.h"
#include "harness/cases/other_launch.h"
#include "harness/cases/random.h"
#include "harness/verdict/interleaved_plans.h"
#include "harness/verdict/plan_execution.h"

namespace attest {
namespace {

constexpr int kPlans = 3;
constexpr std::size_t kFewestSteps = 20, kMostSteps = 32;

/// What has been done with a plan, as far as the next step needs it.
struct Progress {
  bool made = false, uploaded = false, ran = false;

  bool allows(PlanAct act) const {
    switch (act) {
      case PlanAct::prepare: return !made;
      case PlanAct::destroy:
      case PlanAct::upload:
      case PlanAct::upload_other:
      case PlanAct::upload_shared:
      case PlanAct::upload_one: return made;
      case PlanAct::run: return uploaded;
      case PlanAct::download: return ran;
    }
    return false;
  }

  void take(PlanAct act) {
    switch (act) {
      case PlanAct::prepare: *this = {true, false, false}; break;
      case PlanAct::destroy: *this = {}; break;
      case PlanAct::upload:
      case PlanAct::upload_other:
      case PlanAct::upload_shared:
      case PlanAct::upload_one:
        uploaded = true;
        ran = false;
        break;
      case PlanAct::run: ran = true; break;
      case PlanAct::download: break;
    }
  }
};

/// What the others do meanwhile, each as often as it stands here.
constexpr std::array kActs = {PlanAct::prepare, PlanAct::prepare,      PlanAct::prepare,    PlanAct::prepare,
                              PlanAct::upload,  PlanAct::upload_other, PlanAct::upload_one, PlanAct::run,
                              PlanAct::run,     PlanAct::run,          PlanAct::run,        PlanAct::download,
                              PlanAct::destroy};
constexpr std::size_t kLongestBurst = 4;    ///< runs on one upload
constexpr std::size_t kMostMeanwhile = 6;   ///< acts of the others between a run and its download
constexpr std::size_t kOtherDataOneIn = 3;  ///< plans run on other data first
constexpr std::size_t kDestroyedOneIn = 4;  ///< plans are destroyed after a download
constexpr std::size_t kSharedOneIn = 6;     ///< uploads have one memory for two tensors

/// Draws a sequence as visits: a plan gets the case's data and runs, the others take steps, then its result is looked
/// at. Steps drawn one by one would hardly ever look at a result of which anything is known.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  PlanSteps steps() {
    const std::size_t count = kFewestSteps + random_.below(kMostSteps - kFewestSteps + 1);
    while (steps_.size() < count) visit(1 + static_cast<int>(random_.below(2)));
    visit(1);
    return std::move(steps_);
  }

 private:
  Progress& plan(int number) { return plans_[static_cast<std::size_t>(number - 1)]; }

  void take(int number, PlanAct act) {
    steps_.push_back({number, act});
    plan(number).take(act);
  }

  void run(int number) {
    const std::size_t times = random_.below(2) == 0 ? 1 : 1 + random_.below(kLongestBurst);
    for (std::size_t n = 0; n < times; ++n) take(number, PlanAct::run);
  }

  void visit(int number) {
    if (!plan(number).made) take(number, PlanAct::prepare);
    if (random_.below(kOtherDataOneIn) == 0) {
      take(number, random_.below(2) == 0 ? PlanAct::upload_one : PlanAct::upload_other);
      run(number);
    }
    take(number, random_.below(kSharedOneIn) == 0 ? PlanAct::upload_shared : PlanAct::upload);
    run(number);
    for (std::size_t left = random_.below(kMostMeanwhile + 1); left > 0;) {
      const int other = 1 + (number - 1 + 1 + static_cast<int>(random_.below(kPlans - 1))) % kPlans;
      const PlanAct act = random_.pick(kActs);
      if (!plan(other).allows(act)) continue;
      --left;
      if (act == PlanAct::run)
        run(other);
      else
        take(other, act);
    }
    take(number, PlanAct::download);
    if (random_.below(kDestroyedOneIn) == 0) take(number, PlanAct::destroy);
  }

  Random random_;
  PlanSteps steps_;
  std::array<Progress, kPlans> plans_;
};

/// Another number, or another visibility, at one place of a tensor; nothing where there is no place.
void change_one_element(TensorStorage& tensor, Random& random) {
  const TensorPlace& place = tensor.place();
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::size_t>(n)));
  };
  if (place.shape[0] == 0) return;
  const std::int64_t b = below(place.shape[0]), rows = place.rows(b);
  if (place.shape[1] == 0 || rows == 0 || place.shape[3] == 0) return;
  const std::int64_t h = below(place.shape[1]), l = below(rows), d = below(place.shape[3]);
  const std::int64_t at = place.element(b, h, l, d);
  const double now = load(tensor.memory().data(), tensor.dtype(), at);
  if (tensor.dtype() == DType::boolean) {
    tensor.set(b, h, l, d, now == 0);
    return;
  }
  tensor.set(b, h, l, d, std::isfinite(now) && std::fabs(now) < 1e3 ? (now < 0 ? 4 : -4) : 1);
}

/// Of each tensor one: a checksum of a sample of them is as it was.
void change_one_element_each(CaseInputs& inputs, std::uint64_t seed) {
  Random random(seed);
  for (const TensorId id : {TensorId::v, TensorId::k, TensorId::q, TensorId::mask, TensorId::part_o, TensorId::part_lse,
                            TensorId::new_k, TensorId::new_v, TensorId::q_rope, TensorId::k_rope, TensorId::q_scales,
                            TensorId::k_scales, TensorId::v_scales}) {
    if (inputs.has(id)) change_one_element(inputs.at(id), random);
  }
}

bool lie_alike(const ConstTensor& a, const ConstTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && !a.starts == !b.starts;
}

/// Views of which two or three are one and the same, as far as their shapes allow.
Inputs with_shared_memory(const CaseInputs& data, std::uint64_t seed) {
  Inputs inputs = data.views();
  if (!inputs.has(TensorId::q)) return inputs;
  const bool queries = lie_alike(inputs.q(), inputs.k()) && !inputs.q().starts,
             values = lie_alike(inputs.k(), inputs.v());
  if (queries && (!values || seed % 3 != 0)) inputs.set(TensorId::k, inputs.q());
  if (values && (!queries || seed % 3 != 1)) {
    inputs.set(TensorId::v, inputs.k());
    if (inputs.past_k().data && lie_alike(inputs.past_k(), inputs.past_v()))
      inputs.set(TensorId::past_v, inputs.past_k());
  }
  return inputs;
}

/// One plan with its tensors.
class LivingPlan {
 public:
  LivingPlan(Backend& backend, const Problem& problem, const CaseInputs& data)
      : backend_(backend), problem_(problem), data_(data) {
    if (problem.call.dynamic) other_launch_ = other_launch(problem);
  }

  /// Whether what is downloaded now must be the case's result, or that of the inputs that are told.
  bool holds_result() const { return ran_on_ == PlanAct::upload || ran_on_ == PlanAct::upload_shared; }
  const Inputs* other_inputs() const { return ran_on_ == PlanAct::upload_shared ? &*shared_ : nullptr; }
  const GuardedOutputs& outputs() const { return *outputs_; }

  void take(PlanAct act, std::uint64_t seed) {
    switch (act) {
      case PlanAct::prepare: plan_ = make_plan(backend_, problem_); break;
      case PlanAct::destroy:
        plan_.reset();
        staged_.reset();
        launched_otherwise_.reset();
        break;
      case PlanAct::upload:
      case PlanAct::upload_other:
      case PlanAct::upload_shared:
      case PlanAct::upload_one: upload(act, seed); break;
      case PlanAct::run:
        run_plan(*plan_);
        ran_on_ = uploaded_;
        break;
      case PlanAct::download:
        outputs_.emplace(ran_on_ == PlanAct::upload_other && other_launch_ ? *other_launch_ : problem_);
        plan_->download(outputs_->views());
        break;
    }
  }

 private:
  void upload(PlanAct act, std::uint64_t seed) {
    uploaded_ = act;
    if (act == PlanAct::upload_other && other_launch_) {
      if (!launched_otherwise_) launched_otherwise_ = make_inputs(*other_launch_);
      plan_->upload(launched_otherwise_->views());
      return;
    }
    if (staged_)
      copy_data(data_, *staged_);
    else
      staged_ = data_;
    if (act == PlanAct::upload_other) change_data(problem_, *staged_);
    if (act == PlanAct::upload_one) change_one_element_each(*staged_, seed);
    if (act == PlanAct::upload_shared) shared_ = with_shared_memory(*staged_, seed);
    plan_->upload(act == PlanAct::upload_shared ? *shared_ : staged_->views());
  }

  Backend& backend_;
  const Problem& problem_;
  const CaseInputs& data_;
  std::optional<Problem> other_launch_;  ///< where lengths are data: another run of the plan, and its data
  std::optional<CaseInputs> launched_otherwise_;
  std::optional<CaseInputs> staged_;
  std::optional<GuardedOutputs> outputs_;
  std::unique_ptr<Plan> plan_;  ///< goes first
  std::optional<Inputs> shared_;
  PlanAct uploaded_ = PlanAct::upload_other, ran_on_ = PlanAct::upload_other;  ///< the data, by how they came
};

}  // namespace

PlanSteps draw_steps(std::uint64_t seed) { return Draw(seed).steps(); }

std::string steps_text(const PlanSteps& steps) {
  std::string text;
  for (const PlanStep& step : steps)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", step.plan, name_of(step.act));
  return text;
}

PlanSteps steps_from_text(const std::string& text) {
  PlanSteps steps;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool numbered = word.size() > 2 && word[0] >= '1' && word[0] <= '0' + kPlans && word[1] == ':';
    const auto act = numbered ? value_named<PlanAct>(word.substr(2)) : std::nullopt;
    if (!act)
      throw UserError("--steps: \"" + word +
                      "\" is no step; they are as 1:prepare, with plans 1 to 3 and prepare, "
                      "upload, upload-other, upload-shared, upload-one, run, download, destroy");
    steps.push_back({word[0] - '0', *act});
  }
  if (possible_steps(steps) != steps)
    throw UserError("--steps: an upload needs a plan that is prepared, a run an upload, and a download a run");
  return steps;
}

PlanSteps possible_steps(const PlanSteps& steps) {
  std::array<Progress, kPlans> plans;
  PlanSteps possible;
  for (const PlanStep& step : steps) {
    Progress& plan = plans[static_cast<std::size_t>(step.plan - 1)];
    if (!plan.allows(step.act)) continue;
    plan.take(step.act);
    possible.push_back(step);
  }
  return possible;
}

bool take_steps(Backend& backend, const Problem& problem, const CaseInputs& data, const PlanSteps& steps,
                std::uint64_t seed, const JudgeResult& judge) {
  const Problem other = same_sizes_other_values(problem);
  const bool has_other = !refusal_of(backend, other);
  const CaseInputs other_data = has_other ? make_inputs(other) : CaseInputs();
  std::array<LivingPlan, kPlans> plans = {
      LivingPlan(backend, problem, data), LivingPlan(backend, problem, data),
      LivingPlan(backend, has_other ? other : problem, has_other ? other_data : data)};
  for (const PlanStep& step : steps) {
    LivingPlan& plan = plans[static_cast<std::size_t>(step.plan - 1)];
    plan.take(step.act, seed);
    const bool judged = step.act == PlanAct::download && step.plan < kPlans && plan.holds_result();
    if (judged && !judge(plan.outputs(), plan.other_inputs())) return false;
  }
  return true;
}

PlanSteps shortest_steps(PlanSteps failing, const std::function<bool(const PlanSteps&)>& fails,
                         const std::function<bool()>& go_on) {
  for (std::size_t chunk = std::max<std::size_t>(failing.size() / 2, 1); chunk >= 1;) {
    bool shorter = false;
    // From the end on: what came last is judged, and what came before may have caused it.
    for (std::size_t end = failing.size(); end > 0; end = end > chunk ? end - chunk : 0) {
      end = std::min(end, failing.size());
      if (!go_on()) return failing;
      PlanSteps fewer(failing);
      const auto last = fewer.begin() + static_cast<std::ptrdiff_t>(end);
      fewer.erase(last - static_cast<std::ptrdiff_t>(std::min(chunk, end)), last);
      fewer = possible_steps(fewer);
      if (fewer.empty() || fewer.size() >= failing.size() || !fails(fewer)) continue;
      failing = std::move(fewer);
      shorter = true;
    }
    if (chunk == 1 && !shorter) break;
    if (!shorter) chunk = std::max<std::size_t>(chunk / 2, 1);
  }
  // The first plan is as good as the second, and the one that a reader expects.
  if (std::ranges::none_of(failing, [](const PlanStep& step) { return step.plan == 1; }) && go_on()) {
    PlanSteps renamed = failing;
    for (PlanStep& step : renamed) step.plan = step.plan == 2 ? 1 : step.plan;
    if (fails(renamed)) return renamed;
  }
  return failing;
}

}  // namespace attest

// simd_budget CASE...: where the cycles of backends/simd go on these cases, in f32 and on one thread: the steps of its
// kernels, and what the schedule around them takes. backends/simd/README.md has a table of it.
#include <fmt/core.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "backends/simd/plan.h"
#include "harness/base/stopwatch.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/cases/inputs.h"
#include "harness/speed/machine/roof.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

using simd::Kernels;
using simd::Tile;

enum Step { kScores, kMask, kHide, kSoftmax, kAccumulate, kPackValues, kHeads, kNarrow, kSteps };
constexpr const char* kStepNames[] = {"scores",     "mask",        "hide",        "softmax",
                                      "accumulate", "pack values", "whole heads", "narrow heads"};

const Kernels<float>* kernels = nullptr;  ///< the ones that are measured
std::uint64_t spent[kSteps];

/// Cycles of the processor's clock that counts at one rate, whatever the core's is.
template <class Work>
auto measured(Step step, const Work& work) {
  struct Counting {
    Step step;
    std::uint64_t since = __rdtsc();
    ~Counting() { spent[step] += __rdtsc() - since; }
  } counting{step};
  return work();
}

/// The same functions, which count what they take.
Kernels<float> counting_kernels() {
  Kernels<float> counting = *kernels;
  const auto scores = [](const Tile<float>& tile) { measured(kScores, [&] { kernels->scores(tile); }); };
  const auto few = [](const Tile<float>& tile) { measured(kScores, [&] { kernels->scores_of_few(tile); }); };
  const auto add = [](const Tile<float>& tile) { measured(kAccumulate, [&] { kernels->accumulate(tile); }); };
  const auto add_few = [](const Tile<float>& tile) { measured(kAccumulate, [&] { kernels->accumulate_few(tile); }); };
  counting.scores = scores;
  counting.scores_of_few = few;
  counting.accumulate = add;
  counting.accumulate_few = add_few;
  counting.mask = [](const Tile<float>& tile) { measured(kMask, [&] { kernels->mask(tile); }); };
  counting.hide = [](const Tile<float>& tile) { measured(kHide, [&] { kernels->hide(tile); }); };
  counting.softmax = [](const Tile<float>& tile) { measured(kSoftmax, [&] { kernels->softmax(tile); }); };
  counting.attend_head = [](const simd::WholeHead<float>& head) {
    return measured(kHeads, [&] { return kernels->attend_head(head); });
  };
  counting.attend_narrow = [](const simd::NarrowTile<float>& tile) {
    measured(kNarrow, [&] { kernels->attend_narrow(tile); });
  };
  counting.pack_values = [](const float* from, std::int64_t stride, std::int64_t keys, std::int64_t dim, float* to) {
    return measured(kPackValues, [&] { return kernels->pack_values(from, stride, keys, dim, to); });
  };
  return counting;
}

struct Run {
  double seconds = 0;
  std::uint64_t cycles = 0;
  std::vector<std::uint64_t> steps;
};

/// The fastest of some runs.
Run fastest(Plan& plan) {
  constexpr int kRuns = 15;
  constexpr double kEnough = 2;
  Run best;
  const Stopwatch watch;
  for (int n = 0; n < kRuns && (n < 3 || watch.seconds() < kEnough); ++n) {
    std::fill(std::begin(spent), std::end(spent), 0);
    const Stopwatch run;
    const std::uint64_t since = __rdtsc();
    plan.run();
    const std::uint64_t cycles = __rdtsc() - since;
    if (n > 0 && cycles >= best.cycles) continue;
    best = {run.seconds(), cycles, {std::begin(spent), std::end(spent)}};
  }
  return best;
}

void print_budget(const std::string& line) {
  const Case one = case_from_line(line);
  const Call& call = one.problem.call;
  if (call.dtype != DType::f32 || call.wants_gradients()) throw UserError(line + ": a forward call in f32 is wanted");
  const CaseInputs inputs = make_inputs(one.problem, 1);
  const Kernels<float> counting = counting_kernels();
  simd::SimdPlan<float> watched(call, counting, 1), two(call, *kernels, 2);
  watched.upload(inputs.views());
  two.upload(inputs.views());
  const Run run = fastest(watched);
  const double of_two = fastest(two).seconds;
  const double flops = operator_of(one.problem).useful_operations(call, inputs.views());
  // Cycles of the fixed clock in which multiply-adds alone would be done, at what this core can do at the moment.
  const double roof = measure_fma_again(1, false, 0) * 1e9;
  fmt::print("{}\n  {:.3f} ms, {:.2f} of the roof of {:.0f} GFLOP/s; two threads {:.2f} times as fast\n", line,
             run.seconds * 1e3, flops / run.seconds / roof, roof * 1e-9, run.seconds / of_two);
  const auto total = static_cast<double>(run.cycles);
  std::uint64_t known = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::uint64_t cycles = run.steps[static_cast<std::size_t>(step)];
    known += cycles;
    if (cycles > 0) fmt::print("  {:<12} {:5.1f} %\n", kStepNames[step], 100 * static_cast<double>(cycles) / total);
  }
  const double products = static_cast<double>(run.steps[kScores] + run.steps[kAccumulate]);
  fmt::print("  {:<12} {:5.1f} %\n", "schedule", 100 * (total - static_cast<double>(known)) / total);
  if (products > 0)
    fmt::print("  the products by themselves: {:.2f} of the roof\n", flops / (run.seconds * products / total) / roof);
}

}  // namespace
}  // namespace attest

int main(int count, char** words) {
  try {
    attest::kernels = &attest::simd::kernels_of<float>(attest::simd::chosen_target());
    for (int n = 1; n < count; ++n) attest::print_budget(words[n]);
    if (count > 1) return 0;
    fmt::print(stderr, "usage: simd_budget CASE...\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "simd_budget: {}\n", error.what());
  }
  return 2;
}

// The life of plans: a random sequence of steps over three plans of one backend. A result is a function of the call and
// of the data uploaded last, whichever steps came before it and between.
//
// Plans 1 and 2 are of the case's call, each with tensors of its own; plan 3 has the same sizes and says other values.
// What is downloaded from the first two after they ran on the case's data is what the case expects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "reference/base/names.h"
#include "reference/call/problem.h"

namespace attest {

enum class PlanAct : std::uint8_t {
  prepare,
  upload,         ///< the case's data
  upload_other,   ///< other data at the same addresses
  upload_shared,  ///< the case's data, keys in the memory of the values, or queries in that of the keys
  upload_one,     ///< the case's data at the same addresses, with one element of each tensor changed
  run,
  download,
  destroy
};

template <>
inline constexpr auto kNames<PlanAct> = name_table("prepare", "upload", "upload-other", "upload-shared", "upload-one",
                                                   "run", "download", "destroy");

struct PlanStep {
  int plan = 1;  ///< 1 to 3
  PlanAct act = PlanAct::prepare;
  bool operator==(const PlanStep&) const = default;
};
using PlanSteps = std::vector<PlanStep>;

/// A sequence that a seed draws, the same everywhere. Results of plans 1 and 2 are judged, that of plan 1 last.
PlanSteps draw_steps(std::uint64_t seed);
/// "1:prepare 1:upload 2:prepare 1:run 1:download", and back. UserError: it is no such text, or a step comes before one
/// that it needs.
std::string steps_text(const PlanSteps& steps);
PlanSteps steps_from_text(const std::string& text);
/// Without those that lack a step before them: an upload needs a plan, a run an upload, a download a run.
PlanSteps possible_steps(const PlanSteps& steps);

/// Looks at a result that must be right for the case's data or, if they are told, for these inputs; false when it
/// isn't.
using JudgeResult = std::function<bool(const GuardedOutputs&, const Inputs* others)>;

/// Takes the steps, with no plans before and after. False when a result was not right, which ends it. Throws what the
/// backend throws, and CaseFault. `seed` chooses the elements that upload-one changes.
bool take_steps(Backend& backend, const Problem& problem, const CaseInputs& data, const PlanSteps& steps,
                std::uint64_t seed, const JudgeResult& judge);

/// The shortest sequence that still fails: none of its steps can be left out. `go_on` is asked before each try.
PlanSteps shortest_steps(PlanSteps failing, const std::function<bool(const PlanSteps&)>& fails,
                         const std::function<bool()>& go_on);

}  // namespace attest

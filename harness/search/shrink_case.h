// Shrinking with a backend as the judge.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/search/after_case.h"
#include "harness/verdict/verdict.h"

namespace attest {

using ShrinkProgress = std::function<void(std::size_t tried, double seconds_left)>;

/// The verdict of one backend on one case line; with `steps` its plans take these, too (harness/verdict/plan_life.h).
Verdict check_line(const Case& source, Backend& backend, int threads, const PlanSteps& steps = {});
/// The same; a failure says which known mistakes give it, too.
Verdict diagnose_line(const Case& source, Backend& backend, int threads, const PlanSteps& steps = {});

/// Whether a check that makes its case ready finds a failure, by this cause if there is one. What is no case, and what
/// there is no memory for, isn't one.
bool check_fails(const std::function<Verdict()>& check, const std::string& cause = "");

struct ShrunkCase {
  Case source;
  Verdict verdict;  ///< of that case: still a failure, unless what was given is none in a fresh backend
  int tried = 0;
  double seconds = 0;
  bool finished = true;
};

struct ShrinkOptions {
  std::filesystem::path out{};
  ShrinkProgress progress{};
  MakeFresh fresh{};
  PlanSteps steps{};  ///< that plans take in every candidate, where the failure is one among them
};

/// `source` is a case on which the backend fails; the search ends after `budget` seconds, or at an interrupt. The case
/// of a file ends as a file, written to
/// `options.out`; UserError: it can't be taken apart, or what fails are not its inputs
/// alone (see plain_file). `options.progress`, if any, is told how many cases were tried, and how many seconds are
/// left.
///
/// With `options.fresh` the smallest case is one that fails in a fresh backend: what failed only after other candidates
/// is looked for again with a fresh one for each.
ShrunkCase shrink_case(const Case& source, Backend& backend, int threads, double budget,
                       const ShrinkOptions& options = {});

/// The smallest two cases the second of which fails after the first and not by itself, each time in a fresh backend;
/// `source` is the second, the first stands in its verdict. Lines alone: a pair with a file stays as it is.
ShrunkCase shrink_pair(const Case& earlier, const Case& source, int threads, double budget, const MakeFresh& fresh,
                       const ShrinkProgress& progress = {});

}  // namespace attest

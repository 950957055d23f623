// Where a failure comes from, if not from the case alone: from chance, or from an earlier case: a backend that keeps
// something beyond its plans is wrong after one case and right without it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/verdict/prepared_case.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Makes the same backend anew, as no case has met it: with isolation in a new process. Null where that can't be done.
/// May be empty.
using MakeFresh = std::function<std::unique_ptr<Backend>()>;

/// The same without exceptions: null also where it can't be had now.
std::unique_ptr<Backend> made_fresh(const MakeFresh& fresh);

/// Cases that a backend has met, in their order.
using EarlierCases = std::vector<const Case*>;

/// Adds one, and forgets the oldest where there are very many.
void remember_case(EarlierCases& earlier, const Case& source);

/// Has a backend take the steps of a case as a check does, whatever comes of it.
void meet(Backend& backend, const Case& source);

/// The verdict of a fresh backend that has met these cases before; nullopt where there is none to be had.
std::optional<Verdict> check_after(std::span<const Case* const> earlier, const PreparedCase& prepared,
                                   const MakeFresh& fresh);

/// What a failure may be looked for, at most.
struct OriginSearch {
  int repeats = 5;     ///< runs of the case by itself; once they have taken two seconds, no further one
  double seconds = 5;  ///< until the one earlier case must be found
};

/// Runs a failure again, by itself, in a fresh backend each time. What is right in some of these runs tells how many
/// were wrong, the failure among them (Verdict::repeats); unless it crashed or hung it is flaky, with
/// Cause::not_every_time. What is right in all gets the cause
/// Cause::after_another_case, the one earlier case after which it is wrong again (Verdict::after), and a command with
/// both; where no single one is found, Cause::fresh_worker_only. What is wrong in all stays as it is.
void find_origin(Verdict& verdict, const PreparedCase& prepared, std::span<const Case* const> earlier,
                 const MakeFresh& fresh, const OriginSearch& search = {});

}  // namespace attest

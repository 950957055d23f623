// Failures that an earlier case caused: a backend that keeps something beyond its plans is wrong after one case and
// right without it.
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

/// Runs a failure again in a fresh backend. What is right there gets the cause Cause::after_another_case, the one
/// earlier case after which it is wrong again (Verdict::after), and a command with both; where no single one is found
/// in so many seconds, Cause::fresh_worker_only. What is wrong there, too, stays as it is.
void attribute_to_earlier_cases(Verdict& verdict, const PreparedCase& prepared, std::span<const Case* const> earlier,
                                const MakeFresh& fresh, double seconds);

}  // namespace attest

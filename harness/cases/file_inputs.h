// The numbers that a case file gives to the inputs of its call.
#pragma once

#include <string>
#include <vector>

#include "harness/cases/file_problem.h"
#include "harness/cases/inputs.h"

namespace attest {

/// Throws UserError, with `name` in front.
CaseInputs read_file_inputs(const TensorFile& file, const std::string& name, const FileProblem& asked);

/// Inputs of a backward pass that query rows number: as q, or one number for each row.
std::vector<TensorId> loss_inputs(const Problem& problem);

}  // namespace attest

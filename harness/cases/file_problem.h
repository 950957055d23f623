// What a case file asks for: sizes and types by its tensors, options by its metadata.
#pragma once

#include <string>

#include "harness/cases/safetensors.h"
#include "reference/call/problem.h"

namespace attest {

struct FileProblem {
  Problem problem;
  Layout layout = Layout::bhld;  ///< of the file's tensors
  std::int64_t pages = 0;        ///< of k and v, where the file has a page table
};

/// Throws UserError, with `name` in front.
FileProblem read_problem(const TensorFile& file, const std::string& name);

}  // namespace attest

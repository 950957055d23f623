// One case: a problem with its data, from a line or from a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "harness/cases/safetensors.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/problem.h"

namespace attest {

/// What a file holds besides the inputs: stages printed or computed by others.
struct Golden {
  std::map<std::string, FileTensor> stages;        ///< scores, masked_scores, weights, output, X, W_Q, ...
  std::optional<double> tolerance;                 ///< of printed values; of an imported suite, its absolute one
  std::map<std::string, double> stage_tolerances;  ///< of stages printed with another number of digits
  double relative = 0;                             ///< an imported suite's relative tolerance
  std::optional<Arithmetic> producer;              ///< how computed values were computed
  std::vector<std::string> tokens;
  std::string about;
};

/// One case. For a line the inputs are made when it runs; a file's are read when it is loaded.
struct Case {
  std::string label;  ///< the canonical line, or the file as the user named it
  Problem problem;
  std::optional<CaseInputs> inputs;  ///< from a file
  std::optional<Golden> golden;
  bool from_file = false;
  std::string content;  ///< of a file: its fingerprint; empty for a line, which says all
  std::string where;    ///< "smoke.cases:12" for messages
  int line = 0;         ///< of the file of case lines that it stands in, from 1; 0 in none
};

/// Throws UserError with the column marked; `where` stands in front when not empty.
Case case_from_line(const std::string& line, const std::string& where = "");
/// A line or, when it ends in .safetensors, a file.
Case case_from_argument(const std::string& argument);

}  // namespace attest

// Where cases come from: a line, a .safetensors file, or a suite of both.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "harness/cases/safetensors.h"
#include "reference/arithmetic.h"
#include "reference/problem.h"

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
  std::string where;  ///< "smoke.cases:12" for messages
};

/// Throws UserError with the column marked; `where` stands in front when not empty.
Case case_from_line(const std::string& line, const std::string& where = "");
/// Tensors q, k, v; optional mask, past_k, past_v, keep; cu_seqlens_q and cu_seqlens_k (layout thd); page_table (k and
/// v are then pages); decay, beta, past_state (linear attention); stages. Metadata scale,
/// layout, heads, kv_heads, options (a case line without sizes), tolerance, tolerances ("stage=number ..."),
/// relative_tolerance, producer, about.
Case case_from_file(const std::filesystem::path& path);
/// The same of a file in memory; `name` stands in messages.
Case case_from_tensors(TensorFile file, const std::string& name);
/// A line or, when it ends in .safetensors, a file.
Case case_from_argument(const std::string& argument);

struct Suite {
  std::string name;
  std::filesystem::path path;
  std::string about;  ///< the first comment of the file
};

/// Suites installed with attest or in the source tree, by name. $ATTEST_CASES, if set, is looked in first.
std::vector<Suite> find_suites();
/// Throws UserError for an unknown name, suggesting the nearest.
Suite find_suite(const std::string& name);
std::vector<Case> load_suite(const Suite& suite);
/// One case a line, # comments, blank lines. Duplicate lines are an error: a case counts once.
std::vector<Case> load_case_file(const std::filesystem::path& path);

/// Folder that holds `cases/`, `golden/` and `backends/`: the source tree's tests, or share/attest.
std::filesystem::path data_folder(const std::string& what);

/// About as many bytes as a case takes: inputs and outputs here and in a backend, and one head in float64.
double memory_needed(const Problem& problem);
/// Throws UserError when the case needs more memory than the machine has, saying how much.
void check_memory(const Problem& problem, const std::string& label);

}  // namespace attest

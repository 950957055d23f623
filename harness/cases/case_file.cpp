#include "harness/cases/case_file.h"

#include <set>

#include "harness/cases/case_source.h"
#include "harness/cases/file_inputs.h"
#include "harness/cases/file_problem.h"
#include "harness/cases/memory.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

/// The tensors that are no results.
std::set<std::string> names_of_inputs(const Problem& problem) {
  // What says where sequences end, equal counts of cached keys and what dropout keeps are no inputs of every such call.
  std::set<std::string> names = {"cu_seqlens_q", "cu_seqlens_k", "seqused_k", "past_lengths", "keep"};
  for (const TensorId id : inputs_of(problem)) names.emplace(row_of(id).name);
  return names;
}

/// Gradients among the results are ones that this case has.
void check_gradients(const Problem& problem, const Golden& golden, const std::string& name) {
  for (const auto& [key, tensor] : golden.stages) {
    const TensorRow* row = find_row(key);
    if (!row || !row->result || !is_gradient(*row->result)) continue;
    Problem asked = problem;
    asked.call.outputs = {*row->result};
    if (auto fault = find_fault(asked)) throw UserError(name + ": tensor \"" + key + "\": " + fault->message);
  }
}

}  // namespace

Case case_from_tensors(TensorFile file, const std::string& name) {
  const FileProblem asked = read_problem(file, name);
  check_memory(asked.problem, name);
  Case result;
  result.problem = asked.problem;
  result.label = name;
  result.from_file = true;
  result.inputs = read_file_inputs(file, name, asked);
  result.golden = read_golden(file, name, names_of_inputs(asked.problem));
  if (result.golden) check_gradients(asked.problem, *result.golden, name);
  result.content = std::move(file.content);
  return result;
}

Case case_from_file(const std::filesystem::path& path) {
  return case_from_tensors(read_safetensors(path), path.string());
}

}  // namespace attest

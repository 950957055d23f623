#include "harness/cases/deep_backward.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "harness/cases/possible_gradients.h"
#include "harness/cases/suites.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Asks for gradients, in `pass`, by everything that has some; nothing where the rest of the case stands against it.
std::optional<Problem> with_gradients(Problem p, Pass pass) {
  Call& call = p.call;
  call.set_pass(pass);
  for (const Output output : possible_gradients(call)) {
    if (!call.wants(output)) call.outputs.push_back(output);
  }
  for (const TensorId id : values_of<TensorId>()) {
    if (!has_tensor(p, id)) call.tensor(id) = {};
  }
  try {
    return parse_case(print_case(p));
  } catch (const CaseError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Problem> deep_backward_problems(std::uint64_t) {
  std::vector<Problem> problems;
  std::set<std::string> known;
  for (const Case& one : load_suite(find_suite("deep"))) {
    if (one.from_file || one.problem.call.wants_gradients()) continue;
    for (const Pass pass : {Pass::backward, Pass::both}) {
      std::optional<Problem> p = with_gradients(one.problem, pass);
      if (p && known.insert(print_case(*p)).second) problems.push_back(std::move(*p));
    }
  }
  return problems;
}

}  // namespace attest

// attest.check: a run of cases on backends, told verdict by verdict.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/cases/memory.h"
#include "harness/cases/suites.h"
#include "harness/cli/command.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/listening.h"
#include "harness/python/object_text.h"
#include "harness/python/printed_text.h"
#include "harness/report/verdict_json.h"
#include "harness/run/check_run.h"
#include "harness/run/stored_order.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

namespace attest {

namespace nb = nanobind;

namespace {

/// The request's own members, beside those of every request.
struct CheckRequest : Request {
  CaseNames cases;
  CheckSettings settings;
  std::string json, junit;

  explicit CheckRequest(const nb::object& request)
      : Request(request),
        cases{path_texts(request.attr("suites")), path_texts(request.attr("suite_files")),
              path_texts(request.attr("lines"))},
        json(path_text(request.attr("json"))),
        junit(path_text(request.attr("junit"))) {
    settings.filter = nb::cast<std::string>(request.attr("filter"));
    settings.shard = nb::cast<std::string>(request.attr("shard"));
    settings.threads = threads;
    settings.fail_fast = nb::cast<bool>(request.attr("fail_fast"));
    settings.isolated = isolation.has_value();
    settings.once = nb::cast<bool>(request.attr("once"));
    settings.shrink = nb::cast<bool>(request.attr("shrink"));
    settings.compare_refusals = nb::cast<bool>(request.attr("compare_refusals"));
    settings.command = {"attest.check"};
  }
};

/// With more threads than there are cores, as the command does it.
std::vector<BackendSet> larger_sets(const ChosenBackends& chosen, const CheckRequest& request) {
  std::vector<BackendSet> sets;
  if (request.settings.once) return sets;
  Context context = request.context();
  context.threads = 2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) + 1;
  sets.push_back(chosen.make(context, request.isolation));
  return sets;
}

CheckOutcome run(const CheckRequest& request, const ChosenBackends& chosen, Listener& listener, std::FILE* out) {
  std::vector<CaseList> cases = load_cases(request.cases);
  for (const CaseList& list : cases) {
    for (const Case& source : list.cases) check_memory(source.problem, source.label);
  }
  const BackendSet backends = chosen.make(request.context(), request.isolation);
  const std::vector<BackendSet> others = larger_sets(chosen, request);
  std::vector<std::unique_ptr<Report>> reports;
  if (!request.json.empty()) reports.push_back(json_lines_report(request.json));
  if (!request.junit.empty()) reports.push_back(junit_report(request.junit));
  reports.push_back(listening_report(listener));
  ConsoleSettings console;
  console.out = out;
  console.progress = false;  // Python has a line of its own
  reports.push_back(console_report(console));
  if (request.isolation) fmt::print(out, "{}\n", limits_text(*request.isolation));
  return CheckRun(request.settings, std::move(cases), backends, others, EarlierRun(), std::move(reports)).run();
}

nb::dict check(const nb::object& asked, nb::object told) {
  const CheckRequest request(asked);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  CheckOutcome outcome;
  std::string text;  // what the command prints
  {
    const nb::gil_scoped_release released;
    text = printed_text([&](std::FILE* out) { outcome = run(request, chosen, listener, out); });
  }
  listener.require_no_error();
  nb::dict result;
  result["problems"] = outcome.problems;
  result["text"] = path_object(text);
  result["notes"] = outcome.notes;
  result["unwritten"] = outcome.unwritten;
  result["interrupted"] = outcome.interrupted;
  return result;
}

nb::list suites() {
  nb::list rows;
  for (const Suite& suite : find_suites()) rows.append(nb::make_tuple(suite.name, suite.about, suite.path.string()));
  return rows;
}

nb::list cases_of(const nb::object& names, const nb::object& files, const nb::object& lines) {
  nb::list labels;
  for (const CaseList& list : load_cases({path_texts(names), path_texts(files), path_texts(lines)})) {
    for (const Case& source : list.cases) labels.append(path_object(source.label));
  }
  return labels;
}

/// A case line with another pass and the results of that; None where it has no such pass.
nb::object with_pass(const std::string& line, const std::string& name) {
  const std::optional<Pass> pass = value_named<Pass>(name);
  if (!pass) throw UserError("pass_: there is no \"" + printable_line(name) + "\"; forward, backward or both");
  Problem problem = parse_case(line);
  problem.call.set_pass(*pass);
  for (const TensorRow& row : tensor_rows()) {
    if (!has_tensor(problem, row.id)) problem.call.tensor(row.id) = {};
  }
  return find_fault(problem) ? nb::none() : nb::object(nb::str(print_case(problem).c_str()));
}

/// The call of a case line, and which of its tensors a bundle stores with rows before heads.
nb::tuple call_of(const std::string& line) {
  const Call call = case_from_line(line).problem.call;
  nb::list rows_first;
  for (const TensorRow& row : tensor_rows()) {
    if (has_tensor(call, row.id) && StoredOrder(call, row.id).rows_first()) rows_first.append(std::string(row.name));
  }
  return nb::make_tuple(call, rows_first);
}

}  // namespace

void define_checking(nb::module_& module) {
  module.def("check", &check, nb::arg("request"), nb::arg("listener").none());
  module.def("suites", &suites);
  module.def("cases_of", &cases_of);
  module.def("call_of", &call_of, nb::arg("line"));
  module.def("with_pass", &with_pass, nb::arg("line"), nb::arg("pass_"));
  module.def("backends", [] {
    nb::list rows;
    for (const BackendEntry& entry : native_backends())
      rows.append(nb::make_tuple(std::string(entry.name), std::string(entry.unavailable)));
    return rows;
  });
}

}  // namespace attest

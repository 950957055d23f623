// attest.check: a run of cases on backends, told verdict by verdict.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "harness/cases/memory.h"
#include "harness/cases/suites.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/listening.h"
#include "harness/report/verdict_json.h"
#include "harness/run/check_run.h"

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
        cases{nb::cast<std::vector<std::string>>(request.attr("suites")),
              nb::cast<std::vector<std::string>>(request.attr("suite_files")),
              nb::cast<std::vector<std::string>>(request.attr("lines"))},
        json(nb::cast<std::string>(request.attr("json"))),
        junit(nb::cast<std::string>(request.attr("junit"))) {
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
std::vector<BackendSet> crowded(const ChosenBackends& chosen, const CheckRequest& request) {
  std::vector<BackendSet> sets;
  if (request.settings.once) return sets;
  Context context = request.context();
  context.threads = 2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) + 1;
  sets.push_back(chosen.make(context, request.isolation));
  return sets;
}

CheckOutcome run(const CheckRequest& request, const ChosenBackends& chosen, Listener& listener) {
  std::vector<CaseList> cases = load_cases(request.cases);
  for (const CaseList& list : cases) {
    for (const Case& source : list.cases) check_memory(source.problem, source.label);
  }
  const BackendSet backends = chosen.make(request.context(), request.isolation);
  const std::vector<BackendSet> others = crowded(chosen, request);
  std::vector<std::unique_ptr<Report>> reports;
  if (!request.json.empty()) reports.push_back(json_lines_report(request.json));
  if (!request.junit.empty()) reports.push_back(junit_report(request.junit));
  reports.push_back(listening_report(listener));
  return CheckRun(request.settings, std::move(cases), backends, others, EarlierRun(), std::move(reports)).run();
}

nb::dict check(const nb::object& asked, nb::object told) {
  const CheckRequest request(asked);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  CheckOutcome outcome;
  {
    const nb::gil_scoped_release released;
    outcome = run(request, chosen, listener);
  }
  listener.require_no_error();
  nb::dict result;
  result["problems"] = outcome.problems;
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

std::vector<std::string> cases_of(const std::vector<std::string>& names, const std::vector<std::string>& files,
                                  const std::vector<std::string>& lines) {
  std::vector<std::string> labels;
  for (const CaseList& list : load_cases({names, files, lines})) {
    for (const Case& source : list.cases) labels.push_back(source.label);
  }
  return labels;
}

}  // namespace

void define_checking(nb::module_& module) {
  module.def("check", &check, nb::arg("request"), nb::arg("listener").none());
  module.def("suites", &suites);
  module.def("cases_of", &cases_of);
  module.def("backends", [] {
    nb::list rows;
    for (const BackendEntry& entry : native_backends())
      rows.append(nb::make_tuple(std::string(entry.name), std::string(entry.unavailable)));
    return rows;
  });
}

}  // namespace attest

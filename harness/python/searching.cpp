// attest.explain, shrink, fuzz and statements: one backend looked at closely.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/probe/probe.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/listening.h"
#include "harness/python/object_text.h"
#include "harness/python/printed_text.h"
#include "harness/search/fuzz.h"
#include "harness/search/shrink_case.h"
#include "harness/trace/explanation.h"

namespace attest {

namespace nb = nanobind;

namespace {

Case loaded(const std::string& what) {
  Case source = case_from_argument(what);
  check_memory(source.problem, source.label);
  return source;
}

/// The verdict as its JSON and what explain prints.
nb::tuple explain_case(const nb::object& asked, const nb::object& what, int elements, nb::object told) {
  const Request request(asked);
  const std::string line = path_text(what);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  std::string text, verdict;
  {
    const nb::gil_scoped_release released;
    const Case source = loaded(line);
    const BackendSet backends = chosen.make(request.context(), request.isolation);
    text = printed_text([&](std::FILE* out) {
      verdict = verdict_text(explain(source, *backends.all().front(), request.threads, elements, out));
    });
    listener.tell("verdict", verdict);
  }
  return nb::make_tuple(text, verdict);
}

/// The verdict before, the smallest case's (None where nothing fails), how many were tried, and whether to the end.
nb::tuple shrink_line(const nb::object& asked, const nb::object& what, double budget, const nb::object& out,
                      nb::object told) {
  const Request request(asked);
  const std::string line = path_text(what), place = path_text(out);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  std::string before, small;
  ShrunkCase shrunk;
  {
    const nb::gil_scoped_release released;
    const Case source = loaded(line);
    const BackendSet backends = chosen.make(request.context(), request.isolation);
    Backend& backend = *backends.all().front();
    const Verdict first = diagnose_line(source, backend, request.threads);
    before = verdict_text(first);
    if (is_failure(first)) {
      const MakeFresh fresh = [&, name = backend.identity().name] { return backends.fresh(name); };
      shrunk = shrink_case(source, backend, request.threads, budget, {place, {}, fresh, steps_from_text(first.steps)});
      if (is_failure(shrunk.verdict)) small = verdict_text(shrunk.verdict);
    }
    listener.tell("verdict", before);
  }
  return nb::make_tuple(before, small.empty() ? nb::none() : nb::object(nb::str(small.c_str())), shrunk.tried,
                        shrunk.finished);
}

nb::dict fuzz_backend(const nb::object& asked, nb::object told) {
  const Request request(asked);
  FuzzSettings settings;
  settings.seconds = nb::cast<double>(asked.attr("seconds"));
  settings.count = nb::cast<std::uint64_t>(asked.attr("count"));
  settings.seed = nb::cast<std::uint64_t>(asked.attr("seed"));
  settings.threads = request.threads;
  for (const auto& words : nb::cast<std::vector<std::string>>(asked.attr("always")))
    settings.always.push_back(with_always(words));
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  FuzzResult found;
  {
    const nb::gil_scoped_release released;
    const BackendSet backends = chosen.make(request.context(), request.isolation);
    settings.fresh = [&, name = backends.all().front()->identity().name] { return backends.fresh(name); };
    found = fuzz(*backends.all().front(), settings,
                 [&](const FuzzResult& so_far) { listener.tell("fuzzed", std::to_string(so_far.cases)); });
  }
  listener.require_no_error();
  nb::dict result;
  result["cases"] = found.cases;
  result["passed"] = found.pass;
  result["refused"] = found.refused;
  result["inconclusive"] = found.inconclusive;
  result["failed"] = found.failed;
  nb::list findings;
  for (const Finding& finding : found.findings)
    findings.append(nb::make_tuple(verdict_text(finding.small.verdict), finding.failure.cause.text(), finding.count));
  result["findings"] = findings;
  return result;
}

nb::list rows_of(const std::vector<ProbedStatement>& statements) {
  nb::list rows;
  for (const ProbedStatement& s : statements)
    rows.append(nb::make_tuple(s.name, s.stated, s.observed, s.holds, s.refused, s.too_wide));
  return rows;
}

nb::tuple statements(const nb::object& asked, nb::object told) {
  const Request request(asked);
  const ChosenBackends chosen(asked, native_backends());
  const Listener listener(std::move(told));
  std::vector<ProbedStatement> arithmetic, conventions;
  {
    const nb::gil_scoped_release released;
    const BackendSet backends = chosen.make(request.context(), request.isolation);
    arithmetic = probe_arithmetic(*backends.all().front());
    conventions = probe_conventions(*backends.all().front());
  }
  return nb::make_tuple(rows_of(arithmetic), rows_of(conventions));
}

}  // namespace

void define_searching(nb::module_& module) {
  module.def("explain", &explain_case, nb::arg("request"), nb::arg("case"), nb::arg("elements"),
             nb::arg("listener").none());
  module.def("shrink", &shrink_line, nb::arg("request"), nb::arg("case"), nb::arg("budget"), nb::arg("out"),
             nb::arg("listener").none());
  module.def("fuzz", &fuzz_backend, nb::arg("request"), nb::arg("listener").none());
  module.def("statements", &statements, nb::arg("request"), nb::arg("listener").none());
}

}  // namespace attest

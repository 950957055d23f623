// attest.bench: backends timed on cases whose results were right, interleaved.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <random>

#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/cases/memory.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/listening.h"
#include "harness/python/object_text.h"
#include "harness/python/printed_text.h"
#include "harness/run/case_lists.h"
#include "harness/speed/files/bench_table.h"
#include "harness/speed/files/write_benchmark.h"
#include "harness/speed/machine/thread_pools.h"
#include "harness/speed/timing/timed_case.h"
#include "harness/tuning/parameters.h"

namespace attest {

namespace nb = nanobind;

namespace {

struct BenchRequest : Request {
  CaseNames cases;
  BenchSettings settings;
  std::string json;

  explicit BenchRequest(const nb::object& request)
      : Request(request),
        cases{path_texts(request.attr("suites")), path_texts(request.attr("suite_files")),
              path_texts(request.attr("lines"))},
        json(path_text(request.attr("json"))) {
    settings.threads = threads;
    settings.repetitions = nb::cast<int>(request.attr("repetitions"));
    settings.min_seconds = nb::cast<double>(request.attr("min_seconds"));
    settings.cold = nb::cast<bool>(request.attr("cold"));
    const auto seed = nb::cast<std::optional<std::uint64_t>>(request.attr("seed"));
    settings.seed = seed ? *seed : std::random_device{}();
    if (!isolation) return;
    isolation->seals_inputs = true;
    if (!nb::cast<bool>(request.attr("isolate_own"))) isolation->which = IsolatedBackends::foreign;
  }
};

std::vector<Case> loaded(const CaseNames& names, std::size_t backends, bool isolated) {
  std::vector<Case> all;
  for (CaseList& list : load_cases(names)) {
    for (Case& one : list.cases) {
      check_memory(one.problem, one.label);
      check_memory_to_time(one, backends, isolated);
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::vector<BenchCase> run(const BenchRequest& request, const BackendSet& backends, Listener& listener) {
  std::optional<OutputFile> file;
  if (!request.json.empty()) file.emplace(request.json);
  BenchSettings settings = request.settings;
  settings.progress = [&](const std::string& what) { listener.tell("bench", what); };
  limit_thread_pools(settings.threads);
  const Roof roof = measure_roof(settings.threads);
  std::vector<BenchCase> results;
  for (const Case& one : loaded(request.cases, backends.all().size(), request.isolation.has_value())) {
    if (!interrupted) results.push_back(bench_case(one, backends.all(), roof, settings));
  }
  if (file) {
    BenchmarkContext beside{roof, settings, {"attest.bench"}, {}};
    for (const Backend* backend : backends.all()) beside.backends.push_back(identity_of(*backend));
    write_benchmark(file->stream(), results, beside);
    file->finish();
  }
  return results;
}

nb::dict line_of(const BenchLine& line) {
  nb::dict row;
  row["backend"] = line.backend;
  row["wrong"] = line.wrong.text;
  row["no_speed"] = std::string(name_of(line.wrong.kind));
  row["seconds"] = line.seconds;
  row["upload"] = line.steps.upload;
  row["download"] = line.steps.download;
  row["workspace"] = line.steps.workspace;
  row["total_seconds"] = line.total_seconds;
  row["gflops"] = line.gflops;
  row["disturbed"] = line.disturbed;
  row["apart"] = line.apart;
  row["error"] = line.error_over_bound;
  row["median_ulps"] = line.ulps ? nb::cast(line.ulps->median) : nb::none();
  row["largest_ulps"] = line.ulps ? nb::cast(line.ulps->largest) : nb::none();
  return row;
}

nb::list bench(const nb::object& asked, nb::object told) {
  const BenchRequest request(asked);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  std::vector<BenchCase> cases;
  {
    const nb::gil_scoped_release released;
    const BackendSet backends = chosen.make(request.context(), request.isolation);
    cases = run(request, backends, listener);
  }
  listener.require_no_error();
  if (interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    nb::raise_python_error();
  }
  nb::list rows;
  for (const BenchCase& one : cases) {
    nb::list lines;
    for (const BenchLine& line : one.lines) lines.append(line_of(line));
    rows.append(
        nb::make_tuple(one.case_line, lines, printed_text([&](std::FILE* out) { print_bench_table(one, out); })));
  }
  return rows;
}

}  // namespace

void define_timing(nb::module_& module) { module.def("bench", &bench, nb::arg("request"), nb::arg("listener").none()); }

}  // namespace attest

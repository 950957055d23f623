// attest.relate: a backend held against itself.
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>

#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/listening.h"
#include "harness/python/object_text.h"
#include "harness/relate/relation_report.h"
#include "harness/run/relate_run.h"

namespace attest {

namespace nb = nanobind;

namespace {

using Json = nlohmann::ordered_json;

/// What is no UTF-8 stands as U+FFFD.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

struct RelateRequest : Request {
  RelateRun run;
  std::string json;

  explicit RelateRequest(const nb::object& request) : Request(request), json(path_text(request.attr("json"))) {
    run.relations = chosen_relations(nb::cast<std::string>(request.attr("relations")));
    run.cases = load_cases({path_texts(request.attr("suites")), path_texts(request.attr("suite_files")),
                            path_texts(request.attr("lines"))});
    run.require_memory();
    run.context = context();
  }
};

/// What the command prints. The listener is told each verdict.
std::string relate_backends(RelateRequest& request, const ChosenBackends& chosen, Listener& listener) {
  request.run.make = [&](const Context& context) { return chosen.make(context, request.isolation); };
  const BackendSet backends = request.run.make(request.run.context);
  std::optional<OutputFile> file;
  if (!request.json.empty()) file.emplace(request.json);
  RelationTally tally(names_of(backends));
  std::string failures;
  request.run.run(backends, [&](const RelationVerdict& verdict) {
    tally.add(verdict);
    if (is_failure(verdict)) failures += failure_text(verdict) + "\n";
    const std::string line = line_of(relation_to_json(verdict));
    if (file) file->write(line + "\n");
    listener.tell("relation", line);
  });
  if (file) {
    file->write(line_of(summary_to_json(tally.all(), interrupted)) + "\n");
    file->finish();
  }
  return failures + tally.table(TableFormat::text) + tally.all().summary() + "\n";
}

/// What the command prints, and whether Ctrl-C ended it.
nb::tuple relate(const nb::object& asked, nb::object told) {
  RelateRequest request(asked);
  const ChosenBackends chosen(asked, native_backends());
  Listener listener(std::move(told));
  std::string text;
  {
    const nb::gil_scoped_release released;
    text = relate_backends(request, chosen, listener);
  }
  listener.require_no_error();
  return nb::make_tuple(path_object(text), interrupted.load());
}

}  // namespace

void define_relating(nb::module_& module) {
  module.def("relate", &relate, nb::arg("request"), nb::arg("listener").none());
}

}  // namespace attest

// attest explain: the worst elements of one case on one backend, and where their bounds come from.
#include <CLI/CLI.hpp>
#include <memory>

#include "harness/backends/set/backend_set.h"
#include "harness/cases/long_case.h"
#include "harness/cli/command.h"
#include "harness/trace/explanation.h"

namespace attest {
namespace {

struct ExplainOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  std::vector<std::string> what;  ///< a case, which may have come as several words
  int elements = 3;
};

int run(const ExplainOptions& options, std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const std::vector<std::string> names = options.backend.one("explain looks at", plugins);
  const Case source = one_case(options.what);
  announce_if_long(source.problem, source.label);
  const Context context = options.backend.context();
  const BackendSet backends(plugins.entries(), names, context, options.isolation.options(options.backend));
  const Verdict verdict = explain(source, *backends.all().front(), context.threads, options.elements);
  if (verdict.status == Status::refused) return kNothingChecked;
  return is_failure(verdict) ? kFailed : kOk;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ExplainOptions>();
  auto* sub = add_command(app, "explain", "The worst elements of a case: got, expected, and the bound term by term.",
                          "attest explain \"seq=64 dim=64\" --backend eigen");
  sub->add_option("case", options->what, "A case line or a .safetensors file")->type_name("CASE")->required();
  add_backend_options(*sub, options->backend, BackendCount::one);
  add_plugin_options(*sub, options->backend);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->add_option("--elements", options->elements, "How many of the worst to show")->check(CLI::Range(1, 100));
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest

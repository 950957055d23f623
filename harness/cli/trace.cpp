// attest trace
#include "harness/trace/trace.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "harness/base/data_folder.h"
#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "harness/cli/command.h"
#include "harness/isolation/backend_set.h"
#include "harness/trace/language_model.h"
#include "reference/nearest.h"

namespace attest {
namespace {

struct TraceOptions {
  std::string what, json, svg;
  bool causal = false;
  BackendOptions backend;  ///< of language_model: the one that runs the attention core
  std::string norm = "pre", positions = "sinusoidal", activation = "gelu", text;
};

/// The name of a walkthrough, or what check takes.
Case find_case(const std::string& what) {
  if (what.find('=') != std::string::npos || what.ends_with(".safetensors")) return case_from_argument(what);
  const std::filesystem::path folder = data_folder("golden") / "walkthroughs";
  std::vector<std::string> names = {"language_model"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().stem().string());
  if (std::find(names.begin(), names.end(), what) != names.end())
    return case_from_file(folder / (what + ".safetensors"));
  throw UserError("unknown walkthrough \"" + what + "\"; nearest: " + nearest_name(what, names) +
                  "; or give a case line or a .safetensors file");
}

std::size_t choice(const std::string& option, const std::string& value, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) {
    throw UserError("--" + option + " \"" + value + "\"; nearest: " + nearest_name(value, names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

int run_language_model(const TraceOptions& options, std::span<const BackendEntry> registry) {
  LanguageModelSettings settings;
  settings.pre_norm = choice("norm", options.norm, {"pre", "post"}) == 0;
  settings.sinusoidal = choice("positions", options.positions, {"sinusoidal", "learned"}) == 0;
  settings.activation =
      choice("activation", options.activation, {"gelu", "relu"}) == 0 ? Activation::gelu : Activation::relu;
  if (!options.text.empty()) settings.text = options.text;
  if (!options.json.empty() || !options.svg.empty())
    throw UserError("trace language_model prints; --json and --svg are for cases");
  if (options.backend.names.empty()) {
    trace_language_model(settings, nullptr);
    return kOk;
  }
  const std::vector<std::string> names = options.backend.one("trace runs");
  const BackendSet backends(registry, names, options.backend.context());
  trace_language_model(settings, backends.all().front());
  return kOk;
}

int run(const TraceOptions& options, std::span<const BackendEntry> registry) {
  if (options.what == "language_model") return run_language_model(options, registry);
  Case source = find_case(options.what);
  if (source.from_file) source.label = std::filesystem::proximate(source.label).string();
  const Trace trace = trace_case(source, options.causal);
  // Both files are opened before anything is printed: an unwritable path leaves nothing behind.
  std::optional<OutputFile> svg, json;
  if (!options.svg.empty()) svg.emplace(options.svg);
  if (!options.json.empty()) json.emplace(options.json);
  print_trace(trace);
  if (svg) {
    svg->stream() << trace_svg(trace);
    svg->finish();
  }
  if (json) {
    json->stream() << trace_json(trace);
    json->finish();
  }
  return kOk;
}

}  // namespace

void add_trace(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<TraceOptions>();
  auto* sub = app.add_subcommand("trace",
                                 "Example:\n  attest trace the_cat_sat_on_mat --svg cat.svg\n\n"
                                 "Walk through one case, stage by stage.");
  sub->add_option("what", options->what, "A walkthrough's name, language_model, a case line or a .safetensors file")
      ->required();
  sub->add_flag("--causal", options->causal, "Add the causal mask");
  sub->add_option("--json", options->json, "Write every stage to this file");
  sub->add_option("--svg", options->svg, "Draw the weights, with and without the causal mask");
  sub->add_option("--text", options->text, "language_model: the words");
  sub->add_option("--norm", options->norm, "language_model: pre or post");
  sub->add_option("--positions", options->positions, "language_model: sinusoidal or learned");
  sub->add_option("--activation", options->activation, "language_model: gelu or relu");
  sub->add_option("--backend", options->backend.names, "language_model: run the attention with this backend too");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest

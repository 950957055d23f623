// attest trace
#include "harness/trace/trace.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "harness/base/data_folder.h"
#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "harness/cli/command.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

struct TraceOptions {
  std::string what, json, svg;
  bool causal = false;
  int digits = 4;
  std::optional<std::int64_t> batch, head;
};

/// The name of a walkthrough, or what check takes.
Case find_case(const std::string& what) {
  if (what.find('=') != std::string::npos || what.ends_with(".safetensors")) return case_from_argument(what);
  const std::filesystem::path folder = required_data_folder("golden") / "walkthroughs";
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().stem().string());
  if (std::find(names.begin(), names.end(), what) != names.end())
    return case_from_file(folder / (what + ".safetensors"));
  throw UserError("unknown walkthrough \"" + what + "\"; nearest: " + nearest_name(what, names) +
                  "; or give a case line or a .safetensors file");
}

/// Both files are opened before anything is printed: an unwritable path leaves nothing behind.
class TraceFiles {
 public:
  explicit TraceFiles(const TraceOptions& options) {
    if (!options.svg.empty()) svg_.emplace(options.svg);
    if (!options.json.empty()) json_.emplace(options.json);
  }
  void write_svg(const std::string& text) { write(svg_, text); }
  void write_json(const std::string& text) { write(json_, text); }

 private:
  static void write(std::optional<OutputFile>& file, const std::string& text) {
    if (!file) return;
    file->stream() << text;
    file->finish();
  }
  std::optional<OutputFile> svg_, json_;
};

int run(const TraceOptions& options) {
  Case source = find_case(options.what);
  if (source.from_file) source.label = seen_from_here(source.label).string();
  const Trace trace = trace_case(source, {options.causal, options.batch, options.head});
  TraceFiles files(options);
  print_trace(trace, options.digits);
  files.write_svg(draw_heat_maps(trace.heat_maps));
  files.write_json(trace_json(trace));
  return kOk;
}

}  // namespace

void add_trace(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<TraceOptions>();
  auto* sub = add_command(app, "trace", "Walk through one case, stage by stage.",
                          "attest trace the_cat_sat_on_mat --svg cat.svg");
  sub->add_option("what", options->what, "A walkthrough's name, a case line or a .safetensors file")->required();
  sub->add_flag("--causal", options->causal, "Add the causal mask");
  sub->add_option("--batch", options->batch, "Only this batch");
  sub->add_option("--head", options->head, "Only this head");
  sub->add_option("--digits", options->digits, "Decimals to print")->check(CLI::Range(0, 20));
  sub->add_option("--json", options->json, "Write every stage to this file")->type_name("FILE");
  sub->add_option("--svg", options->svg, "Draw the weights as heat maps, without and with the causal mask")
      ->type_name("FILE");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options); });
}

}  // namespace attest

// attest trace
#include "harness/trace.h"

#include <optional>

#include "harness/cli/cli.h"
#include "harness/output_file.h"
#include "harness/user_error.h"
#include "reference/nearest.h"

namespace attest {
namespace {

/// The name of a walkthrough, or what check takes.
Case find_case(const std::string& what) {
  if (what.find('=') != std::string::npos || what.ends_with(".safetensors")) return case_from_argument(what);
  const std::filesystem::path folder = data_folder("golden") / "walkthroughs";
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) names.push_back(entry.path().stem().string());
  if (std::find(names.begin(), names.end(), what) != names.end()) return case_from_file(folder / (what + ".safetensors"));
  throw UserError("unknown walkthrough \"" + what + "\"; nearest: " + nearest_name(what, names) +
                  "; or give a case line or a .safetensors file");
}

}  // namespace

int run_trace(const TraceOptions& options) {
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

}  // namespace attest

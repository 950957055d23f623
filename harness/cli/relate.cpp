// attest relate: backends held against themselves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/relate/relation_report.h"
#include "harness/run/relate_run.h"

namespace attest {
namespace {

struct RelateOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  OutputOptions output;
  CaseNames cases;
  std::string relations, json;
  bool list = false;

  std::FILE* console() const { return json == "-" || output.for_programs() ? stderr : stdout; }
};

int list_relations(TableFormat format) {
  Table table({{"relation"}, {"what must be equal"}, {"applies to"}});
  for (const Relation& one : relations())
    table.add({std::string(one.name), std::string(one.about), std::string(one.applies)});
  fmt::print("{}", table.printed(format));
  return kOk;
}

/// Told of each verdict as it comes.
class RelateOutput {
 public:
  RelateOutput(const RelateOptions& options, std::vector<std::string> backends)
      : options_(options), tally_(std::move(backends)) {
    progress_.unit = "relations";
    if (!options.json.empty() && options.json != "-") file_.emplace(options.json);
  }

  void add(const RelationVerdict& verdict) {
    tally_.add(verdict);
    if (!options_.json.empty()) write(relation_to_json(verdict).dump() + "\n");
    if (is_failure(verdict)) {
      line_.clear();
      fmt::print(options_.console(), "{}\n", failure_text(verdict));
    } else if (options_.output.verbose) {
      line_.clear();
      fmt::print(options_.console(), "{} {} {} {}{}\n", name_of(verdict.status), verdict.backend, verdict.relation,
                 printable_line(verdict.case_line),
                 verdict.reason.empty() ? "" : ": " + printable_line(verdict.reason));
    }
    progress_.failed = tally_.all().fail;
    ++progress_.done;
    line_.draw(progress_);
  }

  int end() {
    line_.clear();
    const RelationCount& all = tally_.all();
    if (!options_.json.empty()) {
      write(summary_to_json(all, interrupted).dump() + "\n");
      if (file_) file_->finish();
    }
    const TableFormat format = options_.output.table();
    std::FILE* const out = options_.json == "-" ? stderr : stdout;
    if (!options_.output.quiet || format != TableFormat::text) fmt::print(out, "{}", tally_.table(format));
    fmt::print(options_.console(), "{}\n", all.summary());
    if (interrupted) return kInterrupted;
    if (all.fail > 0) return kFailed;
    if (all.ran() > 0) return kOk;
    fmt::print(stderr, "attest: nothing was compared: {}\n",
               all.refused > 0 ? "the backends refused everything" : "no relation applies to these cases");
    return kNothingChecked;
  }

 private:
  void write(const std::string& line) {
    if (file_)
      file_->write(line);
    else
      fmt::print("{}", line);
  }

  const RelateOptions& options_;
  RelationTally tally_;
  std::optional<OutputFile> file_;
  ProgressLine line_;
  Progress progress_;
};

int run(RelateOptions options, std::span<const BackendEntry> registry) {
  if (options.list) return list_relations(options.output.table());
  if (options.json == "-" && options.output.for_programs())
    throw UserError("--format " + options.output.format + ": --json - has standard output; name a file for --json");
  RelateRun related;
  related.relations = chosen_relations(options.relations);
  CaseNames& names = options.cases;
  if (names.arguments.empty() && names.suites.empty() && names.suite_files.empty()) names.suites = {kRelatedSuite};
  related.cases = load_cases(names);
  related.require_memory();
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  related.context = options.backend.context();
  related.make = [&](const Context& context) {
    return BackendSet(plugins.entries(), options.backend.list(plugins), context,
                      options.isolation.options(options.backend));
  };
  const BackendSet backends = related.make(related.context);
  backends.require(options.backend.required());
  RelateOutput output(options, names_of(backends));
  related.run(backends, [&](const RelationVerdict& verdict) { output.add(verdict); });
  return output.end();
}

}  // namespace

void add_relate(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<RelateOptions>();
  auto* sub = add_command(app, "relate",
                          "Hold backends against themselves: the same numbers in a batch and alone, in pieces and at "
                          "once, packed and padded. Other bits must lie within the sum of both bounds.",
                          "attest relate \"batch=4 heads=8/2 seq=64 dim=64 causal\" --backend eigen");
  sub->add_option("case", options->cases.arguments,
                  "Case lines or .safetensors files; - reads case lines from standard input; without cases and suites "
                  "the suite `relations`")
      ->type_name("CASE");
  sub->add_option("--suite", options->cases.suites, "A committed suite by name; may be repeated")->type_name("SUITE");
  sub->add_option("--suite-file", options->cases.suite_files, "Anyone's file of case lines; may be repeated")
      ->type_name("FILE");
  sub->add_option("--relation", options->relations, "Comma separated; default: all that apply")->type_name("NAMES");
  sub->add_flag("--list", options->list, "Print the relations, and run nothing");
  add_backend_options(*sub, options->backend, BackendCount::any);
  add_plugin_options(*sub, options->backend);
  add_require_option(*sub, options->backend);
  sub->add_option("--share", options->cases.share, "n/m: so much of each suite, drawn by --seed");
  sub->add_option("--seed", options->cases.seed, "Of --share and of generated suites: the same seed draws the same");
  sub->add_option("--json", options->json, "Write JSON Lines to this file; - is standard output")->type_name("FILE");
  add_format_option(*sub, options->output, "The table, or with --list the list; but for text alone on standard output");
  add_detail_options(*sub, options->output);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest

// attest bench
#include "harness/speed/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "harness/base/interrupted.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/isolation/backend_set.h"
#include "harness/run/case_lists.h"
#include "harness/run/selection.h"
#include "harness/speed/bench_table.h"
#include "harness/speed/write_benchmark.h"

namespace attest {
namespace {

struct BenchOptions {
  BackendOptions backend;
  CaseNames cases;
  std::string filter, json;
  int repetitions = 9;
  double min_seconds = 0.1;
};

std::vector<Case> load(const CaseNames& names) {
  std::vector<Case> cases;
  for (CaseList& list : load_cases(names)) {
    for (Case& one : list.cases) cases.push_back(std::move(one));
  }
  if (cases.empty()) throw UserError("nothing to time: name a case line or --suite");
  for (const Case& one : cases) {
    if (one.from_file) throw UserError(one.label + ": bench takes case lines; files are for check");
    check_memory(one.problem, one.label);
  }
  return cases;
}

void print_machine(int threads, const Roof& roof, const BackendSet& backends) {
  const Machine machine = this_machine();
  fmt::print("{}, {} thread(s), {}\n", machine.cpu, threads, machine.build);
  fmt::print("roof, measured now: {:.0f} GFLOP/s FMA in f32, {:.0f} in f64, {:.1f} GB/s reading\n", roof.fma_gflops_f32,
             roof.fma_gflops_f64, roof.read_gbps);
  for (const Unavailable& u : backends.unavailable()) fmt::print("{:<10} not available: {}\n", u.name, u.reason);
}

int exit_code_of(const std::vector<BenchCase>& results) {
  std::size_t timed_lines = 0, wrong_lines = 0;
  for (const BenchCase& result : results) {
    for (const BenchLine& line : result.lines) {
      if (line.wrong.empty())
        ++timed_lines;
      else if (!line.wrong.starts_with("refused"))
        ++wrong_lines;
    }
  }
  if (interrupted) return kInterrupted;
  if (wrong_lines > 0) return kFailed;
  if (timed_lines > 0) return kOk;
  fmt::print(stderr, "attest: nothing was timed: the filter left no case, or every backend refused\n");
  return kNothingChecked;
}

int run(const BenchOptions& options, const Invocation& invocation) {
  const std::vector<Case> cases = load(options.cases);
  const Filter filter(options.filter);
  const Context context = options.backend.context();
  const BackendSet backends(invocation.registry, options.backend.list(), context);
  std::optional<OutputFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const BenchSettings settings{context.threads, options.repetitions, options.min_seconds};
  const Roof roof = measure_roof(settings.threads);
  print_machine(settings.threads, roof, backends);
  std::vector<BenchCase> results;
  for (const Case& one : cases) {
    std::vector<Backend*> chosen;
    for (Backend* backend : backends.all()) {
      if (filter.keeps(backend->identity().name + " " + one.label)) chosen.push_back(backend);
    }
    if (chosen.empty() || interrupted) continue;
    results.push_back(bench_case(one, chosen, roof, settings));
    print_bench_table(results.back());
  }
  if (file) {
    BenchmarkContext beside{roof, settings.threads, invocation.words, {}};
    for (const Backend* backend : backends.all()) beside.backends.push_back(backend->identity());
    write_benchmark(*file, results, beside);
  }
  return exit_code_of(results);
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<BenchOptions>();
  auto* sub = app.add_subcommand("bench",
                                 "Example:\n  attest bench \"heads=8 seq=1024 dim=64\" --threads 2\n\n"
                                 "Time backends on cases whose results were right, interleaved.");
  sub->add_option("case", options->cases.arguments, "Case lines");
  sub->add_option("--suite", options->cases.suites, "A suite by name; may be repeated");
  add_backend_options(*sub, options->backend);
  sub->add_option("--filter", options->filter, "ECMAScript expression searched in \"backend case-line\"");
  sub->add_option("--json", options->json, "Write Google Benchmark JSON to this file");
  sub->add_option("--repetitions", options->repetitions, "Interleaved samples per backend and case")
      ->check(CLI::Range(1, 1000));
  sub->add_option("--min-time", options->min_seconds, "Seconds per sample, at least")->check(CLI::Range(0.0, 60.0));
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

}  // namespace attest

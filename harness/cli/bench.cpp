// attest bench
#include "harness/speed/timing/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/long_case.h"
#include "harness/cases/memory.h"
#include "harness/cli/bench_rows.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/mpi/agreement.h"
#include "harness/run/case_lists.h"
#include "harness/run/selection.h"
#include "harness/speed/files/bench_table.h"
#include "harness/speed/files/swept_curves.h"
#include "harness/speed/files/write_benchmark.h"
#include "harness/speed/machine/pinning.h"
#include "harness/speed/machine/thread_pools.h"
#include "harness/speed/studies/profile.h"
#include "harness/speed/studies/sweep.h"
#include "harness/speed/timing/timed_case.h"
#include "harness/speed/trust/processor_time.h"
#include "harness/tuning/parameters.h"
#include "harness/verdict/committed_lists.h"

namespace attest {
namespace {

struct BenchOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  CaseNames cases;
  OutputOptions output;
  std::string filter, json;
  int repetitions = 9;
  double min_seconds = 0.1;
  std::optional<std::uint64_t> seed;
  std::string sweep;
  bool cold = false, profile = false, pin = false, progress = false;

  bool json_on_stdout() const { return json == "-"; }
  /// Where the tables for people go.
  std::FILE* console() const { return json_on_stdout() || output.for_programs() ? stderr : stdout; }
};

constexpr const char* kColumns = R"(Columns of the tables:
  run ms, spread   median time of run(), and the distance between its quartiles as a part of it; of a backend that is
                   timed from outside of its process the time of the whole call
  total ms         medians of upload, run and download, added
  GFLOP/s, of FMA  useful work in that time, and as a fraction of what fused multiply-adds could do here
  error/bound      largest error as a fraction of what rounding can explain: up to 1 is right
  ulps (largest)   median and largest error of o, in units in the last place of its type
  ratio            of total to the fastest that nothing disturbed; ? where others disturbed the samples. Of a device that
                   this machine is known to have, of run)";

std::vector<Case> load(const BenchOptions& options) {
  CaseNames names = options.cases;
  if (!options.sweep.empty()) {
    const Sweep sweep = parse_sweep(options.sweep);
    if (names.arguments.empty()) throw UserError("--sweep changes case lines: name one");
    names.arguments.clear();
    for (const std::string& line : sweep.curves(options.cases.arguments)) {
      for (const long value : sweep.values) names.arguments.push_back(sweep.line_with(line, value));
    }
  }
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

/// How the time of each backend grows along every line that was swept.
void print_growth(const SweptCurves& sweep, std::FILE* out) {
  for (const SweptCurve& curve : sweep.curves) {
    fmt::print(out, "\n{}: run grows with {} to the power of\n", curve.line, sweep.key);
    for (const auto& [backend, growth] : curve.growth) {
      fmt::print(out, "  {:<10} {:>5.2f} from {} to {}; {:.2f} between the last two\n", backend, growth.exponent,
                 growth.from, growth.to, growth.last);
    }
  }
}

/// The case once more for each ablation.
void profile(const Case& one, const BenchCase& whole, const std::vector<Backend*>& chosen, const Roof& roof,
             const BenchSettings& settings, std::FILE* out) {
  const std::vector<AblatedCase> cases = ablated_cases(one);
  if (cases[0].operations <= 0) {
    fmt::print(out, "  no profile: no pair of query and key is visible\n");
    return;
  }
  std::vector<BenchCase> timed = {whole};
  for (std::size_t n = 1; n < cases.size(); ++n) timed.push_back(bench_case(cases[n].changed, chosen, roof, settings));
  print_profile(time_shares(cases, timed, settings.threads), out);
}

/// How far it is: a line that redraws itself on a terminal; with --progress lines elsewhere, too.
class BenchProgress {
 public:
  BenchProgress(std::size_t cases, bool lines) : lines_(lines && !line_.on()) {
    progress_.unit = "cases";
    progress_.wanted = cases;
  }

  bool wanted() const { return line_.on() || lines_; }
  void tell(const std::string& what) {
    progress_.what = what;
    line_.draw_now(progress_);
    if (!lines_) return;
    fmt::print(stderr, "{}\n", printable_line(what));
    std::fflush(stderr);
  }
  void count(const BenchCase& result) {
    ++progress_.done;
    for (const BenchLine& line : result.lines) {
      if (line.wrong.empty()) progress_.worst = std::max(progress_.worst.value_or(0), line.error_over_bound);
      progress_.failed += !line.wrong.empty() && line.wrong.kind != NoSpeed::refused;
    }
  }
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  Progress progress_;
  bool lines_;
};

void print_machine(std::FILE* out, int threads, const Roof& roof, const BackendSet& backends) {
  const Machine machine = this_machine();
  fmt::print(out, "{}, {} thread(s), {}\n", machine.cpu, threads, machine.build);
  fmt::print(out, "roof, measured now: {:.0f} GFLOP/s FMA in f32, {:.0f} in f64, {:.1f} GB/s reading\n",
             roof.fma_gflops_f32, roof.fma_gflops_f64, roof.read_gbps);
  for (const Unavailable& u : by_reason(backends.unavailable()))
    fmt::print(out, "{:<10} not available: {}\n", u.name, printable_line(u.reason));
}

int exit_code_of(const std::vector<BenchCase>& results) {
  std::size_t timed_lines = 0, wrong_lines = 0;
  for (const BenchCase& result : results) {
    for (const BenchLine& line : result.lines) {
      if (line.wrong.empty())
        ++timed_lines;
      else if (line.wrong.kind != NoSpeed::refused)
        ++wrong_lines;
    }
  }
  if (interrupted) return kInterrupted;
  if (wrong_lines > 0) return kFailed;
  if (timed_lines > 0) return kOk;
  fmt::print(stderr, "attest: nothing was timed: the filter left no case, or every backend refused\n");
  return kNothingChecked;
}

std::vector<Backend*> chosen_for(const Case& one, const BackendSet& backends, const Filter& filter) {
  std::vector<Backend*> chosen;
  for (Backend* backend : backends.all()) {
    if (filter.keeps(backend->identity().name + " " + one.label)) chosen.push_back(backend);
  }
  return chosen;
}

/// Throws UserError for what would only be found after other cases were timed.
void check_before_timing(const std::vector<Case>& cases, const BackendSet& backends, const Filter& filter,
                         bool isolated) {
  for (const Backend* backend : backends.all()) waivers_of(backend->identity().name);
  for (const Case& one : cases) check_memory_to_time(one, chosen_for(one, backends, filter).size(), isolated);
}

int run(const BenchOptions& options, const Invocation& invocation, const Ranks* ranks) {
  if (ranks && ranks->size() > 1) {
    throw CommonError(
        fmt::format("bench times on one rank, or on the ranks of one group with --ranks-per-case {0}: {0} that time "
                    "beside each other "
                    "would be in each other's way, and times of several machines are no comparison",
                    ranks->size() * options.backend.ranks_per_case));
  }
  if (options.output.for_programs() && (options.profile || !options.sweep.empty())) {
    throw UserError("--format " + options.output.format + ": what --profile and --sweep print besides is text alone");
  }
  if (options.json_on_stdout() && options.output.for_programs()) {
    throw UserError("--format " + options.output.format + ": --json - has standard output; name a file for --json");
  }
  const std::vector<Case> cases = load(options);
  const Filter filter(options.filter);
  const Context context = options.backend.context();
  // Nobody can know the data of the samples beforehand; the file says which they were.
  const std::uint64_t seed = options.seed ? *options.seed : std::random_device{}();
  BenchSettings settings{context.threads, options.repetitions, options.min_seconds, seed, options.cold};
  BenchProgress progress(cases.size(), options.progress);
  if (progress.wanted()) settings.progress = [&](const std::string& what) { progress.tell(what); };
  if (options.pin && !pin_to_processors(context.threads)) {
    throw UserError(fmt::format("--pin: there are fewer than {} processors for this process", context.threads));
  }
  const std::vector<std::string>& limits = limit_thread_pools(context.threads);
  const std::optional<IsolationOptions> isolation = options.isolation.to_time(options.backend);
  const Plugins plugins(options.backend.sources(), invocation.registry, options.backend.limits());
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), context, isolation);
  backends.require(options.backend.required());
  check_before_timing(cases, backends, filter, isolation.has_value());
  std::optional<OutputFile> file;
  if (!options.json.empty() && !options.json_on_stdout()) file.emplace(options.json);
  const Roof roof = measure_roof(settings.threads);
  print_machine(options.console(), settings.threads, roof, backends);
  if (isolation) fmt::print(options.console(), "{}\n{}", limits_text(*isolation), sandbox_line(backends));
  fmt::print(options.console(), "thread pools told {} by {}\n", context.threads, join_texts(limits, ", "));
  std::vector<BenchCase> results;
  for (const Case& one : cases) {
    const std::vector<Backend*> chosen = chosen_for(one, backends, filter);
    if (chosen.empty() || interrupted) continue;
    progress.clear();
    announce_if_long(one.problem, one.label);
    results.push_back(bench_case(one, chosen, roof, settings));
    progress.count(results.back());
    progress.clear();
    if (options.output.for_programs()) continue;
    print_bench_table(results.back(), options.console());
    if (options.profile && !interrupted) profile(one, results.back(), chosen, roof, settings, options.console());
  }
  progress.clear();
  if (options.output.for_programs()) fmt::print("{}", bench_rows(results).printed(options.output.table()));
  BenchmarkContext beside{roof, settings, invocation.words, {}, {}};
  if (!options.sweep.empty()) {
    beside.sweep = swept_curves(parse_sweep(options.sweep), options.cases.arguments, results);
    print_growth(*beside.sweep, options.console());
  }
  for (const Backend* backend : backends.all()) beside.backends.push_back(identity_of(*backend));
  if (file) {
    write_benchmark(file->stream(), results, beside);
    file->finish();
  } else if (options.json_on_stdout()) {  // what can't be written shows in ferror() at the end
    std::ostringstream json;
    write_benchmark(json, results, beside);
    fmt::print("{}", json.str());
  }
  return exit_code_of(results);
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<BenchOptions>();
  auto* sub = add_command(app, "bench",
                          "Time backends on cases whose results were right, interleaved. Those of plug-ins and of "
                          "Python run in processes of their own and are timed from outside; attest's own run in "
                          "this process unless --isolate is given.",
                          "attest bench \"heads=8 seq=1024 dim=64\" --threads 2");
  sub->add_option("case", options->cases.arguments, "Case lines; - reads them from standard input")->type_name("CASE");
  sub->add_option("--suite", options->cases.suites, "A suite by name; may be repeated")->type_name("SUITE");
  add_backend_options(*sub, options->backend, BackendCount::any);
  add_plugin_options(*sub, options->backend);
  add_isolation_options(*sub, options->backend, options->isolation);
  add_require_option(*sub, options->backend);
  add_ranks_option(*sub, options->backend);
  sub->add_option("--filter", options->filter, "ECMAScript expression searched in \"backend case-line\"");
  sub->add_option("--json", options->json,
                  "Write Google Benchmark JSON to this file; - is standard output, and the tables go to standard error")
      ->type_name("FILE");
  sub->add_option("--repetitions", options->repetitions, "Interleaved samples per backend and case")
      ->check(CLI::Range(1, 1000));
  sub->add_option("--min-time", options->min_seconds, "Seconds per sample, at least")->check(number_range(0.0, 60.0));
  sub->add_option("--seed", options->seed, "Of the samples' data; default: drawn, and kept in the file");
  sub->add_flag("--cold", options->cold, "Time some runs with evicted caches, too");
  sub->add_option("--sweep", options->sweep, "Each line with this key doubling, and the exponent: seq=128..32768");
  sub->add_flag("--profile", options->profile, "Where the time of run goes, by halving sizes");
  sub->add_flag("--pin", options->pin, "Stay on as many processors as threads are given");
  sub->add_flag("--progress", options->progress, "Say what is being done, also where stderr is no terminal");
  add_format_option(*sub, options->output, "One table of all results; but for text when all are timed");
  add_to_footer(*sub, kColumns);
  sub->callback([options, &invocation] {
    invocation.exit_code = run_on_ranks(invocation, options->backend, Oversubscription::is_refused,
                                        [&](const Ranks* ranks) { return run(*options, invocation, ranks); });
  });
}

}  // namespace attest

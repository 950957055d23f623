#include "harness/page/timings.h"

#include <map>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Median over the samples that have this number, times `factor`.
std::optional<double> median_of(const std::vector<const BenchmarkSample*>& samples, const char* key,
                                double factor = 1) {
  std::vector<double> values;
  for (const BenchmarkSample* sample : samples) {
    const auto found = sample->numbers.find(key);
    if (found != sample->numbers.end()) values.push_back(found->second * factor);
  }
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

void describe_case(Timing& timing) {
  timing.dtype = "f32";
  try {
    const Problem problem = parse_case(timing.case_line);
    timing.dtype = name_of(problem.call.dtype);
    timing.key_length = problem.call.key_length;
    timing.head_dim = problem.call.key_dim;
    timing.but_length = without(timing.case_line, "seq");
    timing.but_dim = without(timing.case_line, "dim");
  } catch (const std::exception&) {
    // A file's name, or a line of a younger attest: it has times all the same.
    timing.but_length = timing.but_dim = timing.case_line;
  }
}

}  // namespace

std::vector<Timing> timings_of(const BenchmarkFile& file) {
  std::map<std::string, std::vector<const BenchmarkSample*>> by_key;
  std::vector<std::string> order;
  for (const BenchmarkSample& sample : file.all) {
    std::vector<const BenchmarkSample*>& list = by_key[benchmark_key(sample.backend, sample.case_line)];
    if (list.empty()) order.push_back(benchmark_key(sample.backend, sample.case_line));
    list.push_back(&sample);
  }
  constexpr double kMilliseconds = 1e3;
  std::vector<Timing> timings;
  for (const std::string& key : order) {
    const std::vector<const BenchmarkSample*>& samples = by_key[key];
    Timing t;
    t.backend = samples.front()->backend;
    t.case_line = samples.front()->case_line;
    t.samples = file.samples.at(key);
    t.run = median(t.samples);
    t.low = median_of(samples, "run_low_seconds", kMilliseconds);
    t.high = median_of(samples, "run_high_seconds", kMilliseconds);
    t.total = median_of(samples, "total_seconds", kMilliseconds);
    t.upload = median_of(samples, "upload_seconds", kMilliseconds);
    t.download = median_of(samples, "download_seconds", kMilliseconds);
    t.prepare = median_of(samples, "prepare_seconds", kMilliseconds);
    t.gflops = median_of(samples, "GFLOP/s");
    t.gbps = median_of(samples, "GB/s");
    t.roof_fraction = median_of(samples, "roof_fraction");
    t.error = median_of(samples, "error_over_bound");
    t.median_ulps = median_of(samples, "median_ulps");
    t.largest_ulps = median_of(samples, "largest_ulps");
    t.disturbed = file.disturbed.contains(key);
    describe_case(t);
    timings.push_back(std::move(t));
  }
  return timings;
}

std::string without(const std::string& case_line, const std::string& key) {
  const std::string line = " " + case_line + " ";
  const std::size_t at = line.find(" " + key + "=");
  if (at == std::string::npos) return case_line;
  const std::size_t end = line.find(' ', at + 1);
  const std::string rest = line.substr(0, at) + line.substr(end);
  return rest.size() < 2 ? "" : rest.substr(1, rest.size() - 2);
}

}  // namespace attest

#include "harness/speed/files/benchmark_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/base/schema.h"
#include "harness/base/text.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxBenchmarkBytes = 256 << 20;  ///< a sample takes about a kilobyte

/// Google Benchmark's units; nothing for others.
std::optional<double> milliseconds_of(const std::string& unit) {
  if (unit == "ns") return 1e-6;
  if (unit == "us") return 1e-3;
  if (unit == "ms") return 1;
  if (unit == "s") return 1e3;
  return std::nullopt;
}

/// One run of a file; complaints name the file and the run.
class Run {
 public:
  Run(const OrderedJson& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) fail("is no object");
  }

  [[noreturn]] void fail(const std::string& what) const { throw UserError(place_ + " " + what); }

  std::string text(const char* key, const std::optional<std::string>& otherwise = std::nullopt) const {
    const auto found = json_.find(key);
    if (found == json_.end() && otherwise) return *otherwise;
    if (found == json_.end()) fail(std::string("has no \"") + key + "\"");
    if (!found->is_string()) fail(std::string("has a \"") + key + "\" that is no text");
    return printable_line(found->get<std::string>());
  }

  double number(const char* key, const std::optional<double>& otherwise = std::nullopt) const {
    const auto found = json_.find(key);
    if (found == json_.end() && otherwise) return *otherwise;
    if (found == json_.end()) fail(std::string("has no \"") + key + "\"");
    if (!found->is_number()) fail(std::string("has a \"") + key + "\" that is no number");
    return found->get<double>();
  }

 private:
  const OrderedJson& json_;
  std::string place_;
};

/// Every number beside a sample's time.
std::map<std::string, double> numbers_of(const OrderedJson& run) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : run.items()) {
    if (value.is_number()) numbers[key] = value.get<double>();
  }
  return numbers;
}

/// What the context says, as text. Lists of Google Benchmark's own are left out.
std::map<std::string, std::string> context_of(const OrderedJson& json) {
  std::map<std::string, std::string> texts;
  const auto context = json.find("context");
  if (context == json.end() || !context->is_object()) return texts;
  for (const auto& [key, value] : context->items()) {
    if (value.is_string()) texts[key] = printable_line(value.get<std::string>());
    if (value.is_primitive() && !value.is_string()) texts[key] = value.dump();
  }
  return texts;
}

/// The sweep that the samples are points of, if they are.
std::optional<SweptCurves> sweep_of(const OrderedJson& json, const std::string& name) {
  const auto context = json.find("context");
  if (context == json.end() || !context->is_object() || !context->contains(kSweepKey)) return std::nullopt;
  return swept_curves_from_json((*context)[kSweepKey], name);
}

}  // namespace

std::string BenchmarkFile::text(const std::string& key) const {
  const auto found = context.find(key);
  return found == context.end() ? "" : found->second;
}

double BenchmarkFile::number(const std::string& key) const { return std::strtod(text(key).c_str(), nullptr); }

BenchmarkFile read_benchmark(std::istream& file, const std::string& name) {
  return benchmark_from_json(OrderedJson::parse(file, nullptr, false), name);
}

BenchmarkFile benchmark_from_json(const OrderedJson& json, const std::string& name) {
  if (!json.is_object() || !json.contains("benchmarks") || !json["benchmarks"].is_array()) {
    throw UserError(name + ": no benchmark file; `attest bench --json FILE` writes one");
  }
  BenchmarkFile result;
  result.context = context_of(json);
  if (const std::string schema = result.text("schema"); !schema.empty()) require_schema(name, schema, kBenchmarkSchema);
  result.interrupted = result.text("interrupted") == "true";
  result.sweep = sweep_of(json, name);
  Samples undisturbed;
  std::size_t count = 0;
  for (const OrderedJson& one : json["benchmarks"]) {
    const Run run(one, fmt::format("{}: number {} of \"benchmarks\"", name, ++count));
    if (run.text("run_type", "iteration") != "iteration") continue;
    const std::string benchmark = run.text("name"), unit = run.text("time_unit", "ns");
    const std::optional<double> factor = milliseconds_of(unit);
    if (!factor) run.fail("has the time unit \"" + unit + "\"; ns, us, ms or s");
    const double time = run.number("real_time") * *factor;
    if (!(time > 0) || !std::isfinite(time)) run.fail("has a time that is not above 0");
    const std::string backend = benchmark.substr(0, benchmark.find('/')), case_line = run.text("label", "");
    const std::string key = benchmark_key(backend, case_line);
    result.all.push_back({backend, case_line, time, numbers_of(one)});
    result.samples[key].push_back(time);
    if (!(run.number("disturbed", 0) > 0)) undisturbed[key].push_back(time);
  }
  const long repetitions = std::strtol(result.text("repetitions").c_str(), nullptr, 10);
  for (auto& [key, list] : result.samples) {
    std::vector<double>& kept = undisturbed[key];
    if (kept.size() == list.size()) continue;
    const std::size_t asked = repetitions > 0 ? static_cast<std::size_t>(repetitions) : list.size();
    if (2 * kept.size() >= asked)
      list = std::move(kept);
    else
      result.disturbed.insert(key);
  }
  if (result.samples.empty()) throw UserError(name + ": no samples in it");
  return result;
}

std::vector<std::filesystem::path> benchmark_paths(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string benchmark_key(const std::string& backend, const std::string& case_line) {
  return fmt::format("{:<9} {}", backend, case_line);
}

std::pair<std::string, std::string> backend_and_case(const std::string& key) {
  const std::size_t space = std::min(key.find(' '), key.size());
  return {key.substr(0, space), trimmed(key.substr(space))};
}

BenchmarkFile read_benchmark(const std::filesystem::path& path) {
  std::ifstream file = open_text(path, kMaxBenchmarkBytes);
  return read_benchmark(file, path.string());
}

Samples read_samples(std::istream& file, const std::string& name) { return read_benchmark(file, name).samples; }
Samples read_samples(const std::filesystem::path& path) { return read_benchmark(path).samples; }

}  // namespace attest

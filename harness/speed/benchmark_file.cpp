#include "harness/speed/benchmark_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/base/text.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::uintmax_t kMaxFileBytes = 256 << 20;  ///< a sample takes about a kilobyte

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
  Run(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
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
  const Json& json_;
  std::string place_;
};

/// Every number beside a sample's time.
std::map<std::string, double> numbers_of(const Json& run) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : run.items()) {
    if (value.is_number()) numbers[key] = value.get<double>();
  }
  return numbers;
}

/// What the context says, as text. Lists of Google Benchmark's own are left out.
std::map<std::string, std::string> context_of(const Json& json) {
  std::map<std::string, std::string> texts;
  const auto context = json.find("context");
  if (context == json.end() || !context->is_object()) return texts;
  for (const auto& [key, value] : context->items()) {
    if (value.is_string()) texts[key] = printable_line(value.get<std::string>());
    if (value.is_primitive() && !value.is_string()) texts[key] = value.dump();
  }
  return texts;
}

/// Empty where it doesn't say.
std::string context_of(const Json& json, const char* key) {
  const std::map<std::string, std::string> texts = context_of(json);
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

}  // namespace

BenchmarkFile read_benchmark(std::istream& file, const std::string& name) {
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("benchmarks") || !json["benchmarks"].is_array()) {
    throw UserError(name + ": no benchmark file; `attest bench --json FILE` writes one");
  }
  const std::string schema = context_of(json, "schema");
  if (!schema.empty() && (schema == "0" || schema.find_first_not_of("0123456789") != std::string::npos)) {
    throw UserError(fmt::format("{}: schema \"{}\"; a number from 1 to {} is wanted", name, schema, kBenchmarkSchema));
  }
  if (!schema.empty() && schema != "1" && schema != std::to_string(kBenchmarkSchema)) {
    throw UserError(
        fmt::format("{}: schema {} of a newer attest; this one reads up to {}", name, schema, kBenchmarkSchema));
  }
  Samples samples, undisturbed;
  std::vector<BenchmarkSample> all;
  std::size_t count = 0;
  for (const Json& one : json["benchmarks"]) {
    const Run run(one, fmt::format("{}: number {} of \"benchmarks\"", name, ++count));
    if (run.text("run_type", "iteration") != "iteration") continue;
    const std::string benchmark = run.text("name"), unit = run.text("time_unit", "ns");
    const std::optional<double> factor = milliseconds_of(unit);
    if (!factor) run.fail("has the time unit \"" + unit + "\"; ns, us, ms or s");
    const double time = run.number("real_time") * *factor;
    if (!(time > 0) || !std::isfinite(time)) run.fail("has a time that is not above 0");
    const std::string backend = benchmark.substr(0, benchmark.find('/')), case_line = run.text("label", "");
    const std::string key = benchmark_key(backend, case_line);
    all.push_back({backend, case_line, time, numbers_of(one)});
    samples[key].push_back(time);
    if (!(run.number("disturbed", 0) > 0)) undisturbed[key].push_back(time);
  }
  const long repetitions = std::strtol(context_of(json, "repetitions").c_str(), nullptr, 10);
  std::set<std::string> disturbed;
  for (auto& [key, list] : samples) {
    std::vector<double>& kept = undisturbed[key];
    if (kept.size() == list.size()) continue;
    const std::size_t asked = repetitions > 0 ? static_cast<std::size_t>(repetitions) : list.size();
    if (2 * kept.size() >= asked)
      list = std::move(kept);
    else
      disturbed.insert(key);
  }
  if (samples.empty()) throw UserError(name + ": no samples in it");
  return {std::move(samples),
          std::move(disturbed),
          context_of(json, "cpu"),
          context_of(json, "threads"),
          context_of(json, "interrupted") == "true",
          std::move(all),
          context_of(json)};
}

std::string benchmark_key(const std::string& backend, const std::string& case_line) {
  return fmt::format("{:<9} {}", backend, case_line);
}

BenchmarkFile read_benchmark(const std::filesystem::path& path) {
  std::ifstream file = open_text(path, kMaxFileBytes);
  return read_benchmark(file, path.string());
}

Samples read_samples(std::istream& file, const std::string& name) { return read_benchmark(file, name).samples; }
Samples read_samples(const std::filesystem::path& path) { return read_benchmark(path).samples; }

}  // namespace attest

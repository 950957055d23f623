#include "harness/speed/benchmark_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/user_error.h"

namespace attest {
namespace {

using Json = nlohmann::json;

double milliseconds(double time, const std::string& unit) {
  return unit == "ns" ? time / 1e6 : unit == "us" ? time / 1e3 : unit == "s" ? time * 1e3 : time;
}

}  // namespace

Samples read_samples(std::istream& file, const std::string& name) {
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("benchmarks") || !json["benchmarks"].is_array()) {
    throw UserError(name + ": no benchmark file; `attest bench --json FILE` writes one");
  }
  Samples samples;
  try {
    for (const Json& run : json["benchmarks"]) {
      if (run.value("run_type", "iteration") != "iteration") continue;
      const std::string benchmark = run.at("name").get<std::string>();
      const double time = milliseconds(run.at("real_time").get<double>(), run.value("time_unit", "ns"));
      if (!(time > 0)) throw UserError(name + ": " + benchmark + ": a time that is not above 0");
      const std::string backend = benchmark.substr(0, benchmark.find('/'));
      samples[fmt::format("{:<9} {}", backend, run.value("label", ""))].push_back(time);
    }
  } catch (const Json::exception& error) {
    throw UserError(name + ": " + error.what());
  }
  if (samples.empty()) throw UserError(name + ": no samples in it");
  return samples;
}

Samples read_samples(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw UserError(path.string() + ": can't be read");
  return read_samples(file, path.string());
}

}  // namespace attest

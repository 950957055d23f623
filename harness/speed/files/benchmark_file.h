// The samples that `attest bench --json` wrote.
#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/speed/files/swept_curves.h"

namespace attest {

/// Samples of run() in milliseconds, all above 0, by "backend  case".
using Samples = std::map<std::string, std::vector<double>>;

/// One sample of one backend on one case.
struct BenchmarkSample {
  std::string backend, case_line;
  double milliseconds = 0;                ///< of one run(), above 0
  std::map<std::string, double> numbers;  ///< every other number beside it, by its key in the file
};

/// What one file says.
struct BenchmarkFile {
  Samples samples;
  std::set<std::string> disturbed;             ///< keys whose samples something disturbed so often that they all count
  bool interrupted = false;                    ///< ended early: backends and cases may be missing
  std::vector<BenchmarkSample> all;            ///< disturbed ones, too, in the order of the file
  std::map<std::string, std::string> context;  ///< what the file says of all
  std::optional<SweptCurves> sweep;            ///< of a file of `bench --sweep`

  /// Of the context; "" where the file doesn't say.
  std::string text(const std::string& key) const;
  /// Of the context; 0 where there is no number.
  double number(const std::string& key) const;
};

/// Version of the files that this program writes: 3 has `sweep`, 4 errors in ulps, 5 who was timed apart. One without a
/// version is of the first.
inline constexpr int kBenchmarkSchema = 5;

/// In the context: a list of who has no speed on which case, each with its cause by the names of NoSpeed and its
/// reason. Older files have none.
inline constexpr const char* kNoSpeedKey = "no_speed";

/// In the context: the backends that were timed from outside of their processes, with commas between them; and the
/// sandbox around these, "" without one. Older files have neither.
inline constexpr const char *kTimedApartKey = "timed_apart", *kSandboxKey = "sandbox";

/// Google Benchmark's JSON, of this version or an older one. Samples that something disturbed are left out, unless that
/// leaves fewer than half of those asked for, or, where the file doesn't say how many, of all; as in the table. `name`
/// stands in messages. Throws UserError for anything else, for a newer version, and where no sample is.
BenchmarkFile read_benchmark(std::istream& file, const std::string& name);
BenchmarkFile read_benchmark(const std::filesystem::path& path);
/// The same of a file that was parsed already.
BenchmarkFile benchmark_from_json(const nlohmann::ordered_json& json, const std::string& name);
/// The .json files of a folder, by name.
std::vector<std::filesystem::path> benchmark_paths(const std::filesystem::path& folder);
/// The key under which samples stand: "backend  case".
std::string benchmark_key(const std::string& backend, const std::string& case_line);
/// The backend and the case line of such a key.
std::pair<std::string, std::string> backend_and_case(const std::string& key);
/// The same, samples alone.
Samples read_samples(std::istream& file, const std::string& name);
Samples read_samples(const std::filesystem::path& path);

}  // namespace attest

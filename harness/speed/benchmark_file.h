// The samples that `attest bench --json` wrote.
#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace attest {

/// Samples of run() in milliseconds, all above 0, by "backend  case".
using Samples = std::map<std::string, std::vector<double>>;

/// Version of the files that this program writes; one without a version is of the first.
inline constexpr int kBenchmarkSchema = 2;

/// Google Benchmark's JSON, of this version or an older one. Samples that something disturbed are left out, unless that
/// leaves fewer than half of them. `name` stands in messages. Throws UserError for anything else, for a
/// newer version, and where no sample is.
Samples read_samples(std::istream& file, const std::string& name);
Samples read_samples(const std::filesystem::path& path);

}  // namespace attest

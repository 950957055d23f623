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

/// Google Benchmark's JSON. `name` stands in messages. Throws UserError for anything else, and where no sample is.
Samples read_samples(std::istream& file, const std::string& name);
Samples read_samples(const std::filesystem::path& path);

}  // namespace attest

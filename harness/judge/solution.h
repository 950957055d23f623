// Solutions of FlashInfer-Bench: sources and what is called, in one file .json.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace attest {

struct Solution {
  std::vector<std::pair<std::filesystem::path, std::string>> sources;  ///< below the folder that they are written to
  std::filesystem::path main;
  std::string function;  ///< in `main`
  bool into = true;      ///< the arrays for its outputs come behind the arguments
};

/// Whether a file says that it is one, right or not.
bool is_solution(const std::filesystem::path& file);

/// Throws InvalidSubmission for what is no solution, leaves its folder, or is in another language than Python.
Solution read_solution(const std::filesystem::path& file);

/// Writes the sources below a folder. Throws InvalidSubmission where names stand in each other's way.
void write_sources(const Solution& solution, const std::filesystem::path& folder);

}  // namespace attest

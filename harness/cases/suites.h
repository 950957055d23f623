// Suites, found by name: files of case lines and of files' names, and those that are generated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/generated_suites.h"

namespace attest {

struct Suite {
  std::string name;
  std::filesystem::path path;                 ///< empty where it is generated
  std::string about;                          ///< the first comment of the file
  const GeneratedSuite* generated = nullptr;  ///< what makes its cases; nullptr for a file
};

/// Suites installed with attest or in the source tree, by name, and the generated ones. $ATTEST_CASES, if set, is
/// looked in first.
std::vector<Suite> find_suites();
/// Throws UserError for an unknown name, suggesting the nearest.
Suite find_suite(const std::string& name);
/// `seed` is of generated suites.
std::vector<Case> load_suite(const Suite& suite, std::uint64_t seed = 0);
/// One case a line, # comments, blank lines. Duplicate lines are an error: a case counts once.
std::vector<Case> load_case_file(const std::filesystem::path& path);
/// The same of an open file or a pipe; `name` stands in messages, and files that lines name are looked for in `folder`.
std::vector<Case> load_case_lines(std::istream& file, const std::string& name, const std::filesystem::path& folder);

}  // namespace attest

#include "harness/cases/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "harness/base/machine.h"
#include "harness/base/user_error.h"
#include "reference/case_line.h"
#include "reference/nearest.h"

namespace attest {
namespace fs = std::filesystem;
namespace {

/// A case that needs less than this is never refused: the harness itself takes more.
constexpr double kAlwaysThere = 16 << 20;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Case case_from_line(const std::string& line, const std::string& where) {
  const std::string prefix = where.empty() ? "" : where + ": ";
  Case result;
  try {
    result.problem = parse_case(line);
  } catch (const CaseError& error) {
    const std::size_t at = std::min(error.column() - 1, line.size());
    throw UserError(fmt::format("{}case line, column {}: {}  (\"{} >>{}\")", prefix, error.column(), error.what(),
                                line.substr(0, at), line.substr(at)));
  }
  result.label = print_case(result.problem);
  result.where = where;
  return result;
}

Case case_from_argument(const std::string& argument) {
  if (argument.ends_with(".safetensors")) return case_from_file(argument);
  return case_from_line(argument);
}

fs::path data_folder(const std::string& what) {
  // Beside an installed program first, then in the tree it was built from.
  const fs::path installed = program_path().parent_path().parent_path() / "share" / "attest" / what;
  std::error_code error;
  if (fs::is_directory(installed, error)) return installed;
  const fs::path source =
      what == "backends" ? fs::path(ATTEST_SOURCE_DIR) / what : fs::path(ATTEST_SOURCE_DIR) / "tests" / what;
  if (fs::is_directory(source, error)) return source;
  return fs::path(ATTEST_DATA_DIR) / what;  // a program of others, linked to an installed attest
}

std::vector<Suite> find_suites() {
  std::map<std::string, Suite> found;
  std::vector<fs::path> folders = {data_folder("cases")};
  if (const char* extra = std::getenv("ATTEST_CASES")) folders.insert(folders.begin(), extra);
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".cases") continue;
      Suite suite{entry.path().stem().string(), entry.path(), ""};
      std::ifstream file(entry.path());
      std::string line;
      if (std::getline(file, line) && line.starts_with("#")) suite.about = trimmed(line.substr(1));
      found.emplace(suite.name, suite);
    }
  }
  std::vector<Suite> suites;
  for (auto& [name, suite] : found) suites.push_back(std::move(suite));
  return suites;
}

Suite find_suite(const std::string& name) {
  std::vector<std::string> names;
  for (const Suite& suite : find_suites()) {
    if (suite.name == name) return suite;
    names.push_back(suite.name);
  }
  if (names.empty()) throw UserError("no suites found in " + data_folder("cases").string());
  throw UserError("unknown suite \"" + name + "\"; nearest: " + nearest_name(name, names) +
                  "; `attest list suites` shows all");
}

std::vector<Case> load_case_file(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw UserError(path.string() + ": can't be read");
  std::vector<Case> cases;
  std::map<std::string, int> lines;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = fmt::format("{}:{}", path.filename().string(), number);
    const std::string text = trimmed(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    Case one = text.ends_with(".safetensors") ? case_from_file(fs::proximate(path.parent_path() / text))
                                              : case_from_line(text, where);
    one.where = where;
    const auto [first, fresh] = lines.emplace(one.label, number);
    if (!fresh) {
      throw UserError(fmt::format("{}: the same case stands in line {} already", where, first->second));
    }
    cases.push_back(std::move(one));
  }
  if (file.bad()) throw UserError(path.string() + ": can't be read");
  return cases;
}

std::vector<Case> load_suite(const Suite& suite) { return load_case_file(suite.path); }

double memory_needed(const Problem& problem) {
  const double reference =
      8.0 * static_cast<double>(problem.key_length) * static_cast<double>(problem.key_dim + problem.value_dim + 8);
  return 2 * storage_bytes(problem) + reference;
}

void check_memory(const Problem& problem, const std::string& label) {
  const double needed = memory_needed(problem);
  if (needed < kAlwaysThere) return;
  const double available = available_memory_bytes();
  if (needed > available) {
    throw UserError(fmt::format("\"{}\" needs about {:.1f} GiB of memory, {:.1f} GiB are available; make it smaller",
                                label, needed / 0x1p30, available / 0x1p30));
  }
}

}  // namespace attest

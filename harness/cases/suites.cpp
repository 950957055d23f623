#include "harness/cases/suites.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "reference/base/nearest.h"
#include "reference/options/case_line.h"

namespace attest {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kMaxFileBytes = 64 << 20;  ///< of case lines: a million of them

}  // namespace

std::vector<Suite> find_suites() {
  std::map<std::string, Suite> found;
  std::vector<fs::path> folders = {data_folder("cases")};
  if (const char* extra = std::getenv("ATTEST_CASES")) folders.insert(folders.begin(), extra);
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".cases") continue;
      Suite suite{entry.path().stem().string(), entry.path(), "", nullptr};
      std::ifstream file(entry.path());
      std::string line;
      if (std::getline(file, line) && line.starts_with("#")) suite.about = trimmed(line.substr(1));
      found.emplace(suite.name, suite);
    }
  }
  for (const GeneratedSuite& one : generated_suites()) {
    found.emplace(one.name, Suite{std::string(one.name), {}, std::string(one.about), &one});
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
  required_data_folder("cases");
  throw UserError("unknown suite \"" + name + "\"; nearest: " + nearest_name(name, names) +
                  "; `attest list suites` shows all");
}

std::vector<Case> load_case_lines(std::istream& file, const std::string& name, const fs::path& folder) {
  std::vector<Case> cases;
  std::map<std::string, int> lines;
  Line line;
  std::uintmax_t bytes = 0;
  for (int number = 1; read_line(file, line, kMaxFileBytes); ++number) {
    bytes += line.text.size() + 1;
    if (line.too_long || bytes > kMaxFileBytes) {
      throw UserError(fmt::format("{}: has more than {} bytes, which are the limit", name, kMaxFileBytes));
    }
    const std::string where = fmt::format("{}:{}", name, number);
    const std::string text = trimmed(line.text.substr(0, line.text.find('#')));
    if (text.empty()) continue;
    Case one =
        text.ends_with(".safetensors") ? case_from_file(seen_from_here(folder / text)) : case_from_line(text, where);
    one.where = where;
    one.line = number;
    const auto [first, fresh] = lines.emplace(one.label, number);
    if (!fresh) {
      throw UserError(fmt::format("{}: the same case stands in line {} already", where, first->second));
    }
    cases.push_back(std::move(one));
  }
  if (file.bad()) throw UserError(name + ": can't be read");
  return cases;
}

std::vector<Case> load_case_file(const fs::path& path) {
  std::ifstream file = open_text(path, kMaxFileBytes);
  return load_case_lines(file, path.filename().string(), path.parent_path());
}

std::vector<Case> load_suite(const Suite& suite, std::uint64_t seed) {
  if (!suite.generated) return load_case_file(suite.path);
  std::vector<Case> cases;
  for (Problem& problem : suite.generated->problems(seed)) {
    Case& one = cases.emplace_back();
    one.label = print_case(problem);
    one.problem = std::move(problem);
    one.where = suite.name;
  }
  return cases;
}

}  // namespace attest

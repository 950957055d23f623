#include "harness/verdict/listed_cases.h"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>

#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/cases/case.h"

namespace attest {
namespace {

bool is_file(const std::string& text) { return text.ends_with(".safetensors"); }

}  // namespace

bool ListedCase::matches(const std::string& case_line) const {
  // Files of a suite are listed by their name alone.
  const std::string what = is_file(case_line) ? std::filesystem::path(case_line).filename().string() : case_line;
  return fnmatch(pattern.c_str(), what.c_str(), 0) == 0;
}

std::vector<ListedCase> listed_cases(const std::string& backend, const std::string& file) {
  std::vector<ListedCase> list;
  std::ifstream stream(data_folder("backends") / backend / file);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t hash = std::min(line.find('#'), line.size());
    const std::string pattern = trimmed(line.substr(0, hash));
    if (pattern.empty()) continue;
    const bool as_is = is_file(pattern) || pattern.find('*') != std::string::npos;
    list.push_back({as_is ? pattern : case_from_line(pattern, backend + "/" + file).label,
                    hash < line.size() ? trimmed(line.substr(hash + 1)) : ""});
  }
  return list;
}

const ListedCase* find_case(const std::vector<ListedCase>& list, const std::string& case_line) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.matches(case_line); });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace attest

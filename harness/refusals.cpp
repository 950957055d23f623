#include "harness/refusals.h"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "harness/case.h"

namespace attest {

std::set<std::string> expected_refusals(const std::string& backend) {
  std::set<std::string> lines;
  std::ifstream file(data_folder("backends") / backend / "expected_refusals");
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    const std::size_t last = line.find_last_not_of(" \t\r");
    if (last == std::string::npos) continue;
    line.resize(last + 1);
    // Files of a suite are listed by their name, lines in canonical form; * stands for anything.
    const bool as_is = line.ends_with(".safetensors") || line.find('*') != std::string::npos;
    lines.insert(as_is ? line : case_from_line(line, backend + "/expected_refusals").label);
  }
  return lines;
}

std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts) {
  std::map<std::string, std::set<std::string>> expected;
  std::vector<std::string> problems;
  for (const Verdict& v : verdicts) {
    if (v.backend == "reference") continue;
    if (!expected.contains(v.backend)) expected[v.backend] = expected_refusals(v.backend);
    const std::string file = std::filesystem::path(v.case_line).filename().string();
    const bool is_file = v.case_line.ends_with(".safetensors");
    const auto matches = [&](const std::string& entry) {
      return fnmatch(entry.c_str(), (is_file ? file : v.case_line).c_str(), 0) == 0;
    };
    const auto& list = expected[v.backend];
    const bool listed = list.contains(is_file ? file : v.case_line) || std::any_of(list.begin(), list.end(), matches);
    if (v.status == Status::refused && !listed) {
      problems.push_back("refusal not in backends/" + v.backend + "/expected_refusals: " + v.case_line + " (" +
                         v.reason + ")");
    } else if (v.status != Status::refused && listed) {
      problems.push_back("listed in backends/" + v.backend +
                         "/expected_refusals but no longer refused: " + v.case_line);
    }
  }
  return problems;
}

}  // namespace attest

#include "harness/verdict/committed_lists.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"

namespace attest {
namespace {

bool is_file(const std::string& text) { return text.ends_with(".safetensors"); }

/// Empty when there is no such file. Throws UserError at a line that is no case.
std::vector<ListedCase> read_list(const std::string& backend, const std::string& file) {
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

/// The entry that stands for this case, or nullptr.
const ListedCase* find_case(const std::vector<ListedCase>& list, const std::string& case_line) {
  // Files of a suite are listed by their name alone.
  const std::string what = is_file(case_line) ? std::filesystem::path(case_line).filename().string() : case_line;
  const auto found = std::find_if(list.begin(), list.end(), [&](const ListedCase& entry) {
    return fnmatch(entry.pattern.c_str(), what.c_str(), 0) == 0;
  });
  return found == list.end() ? nullptr : &*found;
}

const std::vector<ListedCase>& waivers_of(const std::string& backend) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<ListedCase>> lists;
  const std::lock_guard lock(mutex);
  const auto found = lists.find(backend);
  if (found != lists.end()) return found->second;
  std::vector<ListedCase> list = read_list(backend, "waivers");
  for (const ListedCase& entry : list) {
    if (entry.comment.empty()) {
      throw UserError("backends/" + backend + "/waivers: " + entry.pattern + ": say why behind a #");
    }
  }
  return lists.emplace(backend, std::move(list)).first->second;
}

}  // namespace

std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts) {
  std::map<std::string, std::vector<ListedCase>> expected;
  std::vector<std::string> problems;
  for (const Verdict& v : verdicts) {
    if (v.backend == "reference") continue;
    if (!expected.contains(v.backend)) expected[v.backend] = read_list(v.backend, "expected_refusals");
    const bool listed = find_case(expected[v.backend], v.case_line) != nullptr;
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

void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers) {
  if (verdict.status != Status::suspect) return;
  if (const ListedCase* entry = find_case(waivers, verdict.case_line)) verdict.waiver = entry->comment;
}

void apply_waiver(Verdict& verdict) { apply_waiver(verdict, waivers_of(verdict.backend)); }

}  // namespace attest

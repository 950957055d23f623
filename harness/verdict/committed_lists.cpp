#include "harness/verdict/committed_lists.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListsHere = "lists";

bool is_file(const std::string& text) { return text.ends_with(".safetensors"); }

bool matches_text(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0 || fnmatch(pattern.c_str(), (" " + text + " ").c_str(), 0) == 0;
}

/// The lists of one of attest's own backends: among those of its family, backends/<family>/lists/<name>/, or
/// backends/<name>/, whether that is there or not.
fs::path own_lists(const std::string& backend) {
  const fs::path all = data_folder("backends");
  std::error_code error;
  for (const fs::directory_entry& family : fs::directory_iterator(all, error)) {
    fs::path lists = family.path() / kListsHere / backend;
    if (fs::is_directory(lists, error)) return lists;
  }
  return all / backend;
}

}  // namespace

bool matches(const std::string& pattern, const Verdict& verdict) {
  if (!is_file(verdict.case_line)) return matches_text(pattern, verdict.case_line);
  // Files of a suite are listed by their name alone.
  if (matches_text(pattern, fs::path(verdict.case_line).filename().string())) return true;
  return pattern.find('*') != std::string::npos && !is_file(pattern) && matches_text(pattern, verdict.call_line);
}

fs::path list_path(const std::string& backend, const std::string& file) {
  const char* outside = std::getenv("ATTEST_LISTS");
  std::error_code error;
  const fs::path lists = own_lists(backend);
  const bool own = fs::is_directory(lists, error);
  // What isn't attest's own has no place in an installation, which its author may not even write to.
  const fs::path path = fs::path(outside ? outside : kListsHere) / backend / file;
  return !own || (outside && fs::exists(path, error)) ? path : lists / file;
}

std::vector<ListedCase> read_list(const fs::path& path) {
  std::vector<ListedCase> list;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t hash = std::min(line.find('#'), line.size());
    const std::string pattern = trimmed(line.substr(0, hash));
    if (pattern.empty()) continue;
    const bool as_is = is_file(pattern) || pattern.find('*') != std::string::npos;
    list.push_back({as_is ? pattern : case_from_line(pattern, path.string()).label,
                    hash < line.size() ? trimmed(line.substr(hash + 1)) : ""});
  }
  return list;
}

const std::vector<ListedCase>& waivers_of(const std::string& backend) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<ListedCase>> lists;
  const std::lock_guard lock(mutex);
  const auto found = lists.find(backend);
  if (found != lists.end()) return found->second;
  const fs::path path = list_path(backend, "waivers");
  std::vector<ListedCase> list = read_list(path);
  for (const ListedCase& entry : list) {
    if (entry.comment.empty()) throw UserError(path.string() + ": " + entry.pattern + ": say why behind a #");
  }
  return lists.emplace(backend, std::move(list)).first->second;
}

void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers) {
  if (verdict.status != Status::suspect) return;
  const auto found = std::find_if(waivers.begin(), waivers.end(),
                                  [&](const ListedCase& entry) { return matches(entry.pattern, verdict); });
  if (found != waivers.end()) verdict.waiver = found->comment;
}

std::vector<std::string> unneeded_waivers(const std::vector<Verdict>& verdicts) {
  std::set<std::string> backends;
  for (const Verdict& verdict : verdicts) backends.insert(verdict.backend);
  std::vector<std::string> sentences;
  for (const std::string& backend : backends) {
    for (const ListedCase& entry : waivers_of(backend)) {
      std::size_t met = 0, right = 0;
      for (const Verdict& verdict : verdicts) {
        if (verdict.backend != backend || !matches(entry.pattern, verdict)) continue;
        ++met;
        right += is_right(verdict) ? 1 : 0;
      }
      if (met > 0 && met == right)
        sentences.push_back(backend + " passes what is waived: " + entry.pattern + "; remove it from " +
                            list_path(backend, "waivers").string() + " if it passes everywhere");
    }
  }
  return sentences;
}

void apply_waiver(Verdict& verdict) { apply_waiver(verdict, waivers_of(verdict.backend)); }

}  // namespace attest

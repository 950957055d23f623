#include "harness/verdict/refusal_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/verdict/committed_lists.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWorthAPattern = 4;     ///< cases that share a pattern
constexpr std::size_t kComplaintsAtMost = 8;  ///< of one backend

const std::vector<ListedCase>& refusals_of(const std::string& backend) {
  static std::mutex mutex;
  static std::map<fs::path, std::vector<ListedCase>> lists;
  const fs::path path = list_path(backend, "expected_refusals");
  const std::lock_guard lock(mutex);
  const auto found = lists.find(path);
  return found != lists.end() ? found->second : lists.emplace(path, read_list(path)).first->second;
}

/// Reasons that differ in their numbers alone are one kind.
std::string kind_of(const std::string& reason) {
  std::string kind;
  for (const char c : reason) {
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind;
}

/// Cases with something in common.
struct RefusalGroup {
  std::string reason, first;
  std::size_t count = 0;

  void add(const Verdict& v, const std::string& why) {
    if (count++ == 0) first = v.case_line, reason = why;
  }
};

void complain(const std::string& what, const std::map<std::string, RefusalGroup>& groups,
              std::vector<std::string>& problems) {
  std::size_t said = 0, left = 0;
  for (const auto& [kind, group] : groups) {
    if (++said > kComplaintsAtMost) {
      left += group.count;
      continue;
    }
    problems.push_back(fmt::format("{}: {} case{}, {}{}{}", what, group.count, group.count == 1 ? "" : "s",
                                   group.reason, group.count == 1 ? ": " : "; the first: ", group.first));
  }
  if (left > 0) problems.push_back(fmt::format("{}: {} more, for other reasons", what, left));
}

/// What a case line says, "key=value" and "key=*" alike; the seed is no reason to refuse.
std::set<std::string> features(const std::string& line) {
  std::set<std::string> list;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (key == "seed" || word.find_first_of("?[\\") != std::string::npos) continue;
    list.insert("* " + word + " *");
    if (equals != std::string::npos) list.insert("* " + key + "=* *");
  }
  return list;
}

const std::string& line_of(const Verdict& v) { return v.call_line.empty() ? v.case_line : v.call_line; }

std::string name_in_list(const Verdict& v) {
  return v.call_line.empty() ? v.case_line : fs::path(v.case_line).filename().string();
}

using Refused = std::vector<const Verdict*>;

/// The feature that most of the refused have and none of the others, with those that have it.
std::pair<std::string, Refused> widest_pattern(const Refused& refused, const std::set<std::string>& kept) {
  std::map<std::string, Refused> by_feature;
  for (const Verdict* v : refused) {
    for (const std::string& feature : features(line_of(*v))) {
      if (!kept.contains(feature)) by_feature[feature].push_back(v);
    }
  }
  std::pair<std::string, Refused> best;
  for (auto& [feature, cases] : by_feature) {
    // Of two that reach the same cases the one that says more.
    const bool says_more = cases.size() == best.second.size() && feature.size() > best.first.size();
    if (cases.size() > best.second.size() || says_more) best = {feature, std::move(cases)};
  }
  return best;
}

std::string usual_reason(const Refused& cases) {
  std::map<std::string, RefusalGroup> kinds;
  for (const Verdict* v : cases) kinds[kind_of(v->reason)].add(*v, v->reason);
  return std::max_element(kinds.begin(), kinds.end(),
                          [](const auto& a, const auto& b) { return a.second.count < b.second.count; })
      ->second.reason;
}

}  // namespace

void require_lists(const std::vector<std::string>& backends, const fs::path& written_to) {
  for (const std::string& backend : backends) {
    waivers_of(backend);
    if (written_to.empty()) {
      refusals_of(backend);
    } else {
      read_list(written_to / backend / "expected_refusals");
    }
  }
}

std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts) {
  std::map<std::string, std::map<std::string, RefusalGroup>> unlisted, outdated;  // by backend, then by kind
  for (const Verdict& v : verdicts) {
    if (v.backend == "reference") continue;
    const std::vector<ListedCase>& list = refusals_of(v.backend);
    const auto entry =
        std::find_if(list.begin(), list.end(), [&](const ListedCase& one) { return matches(one.pattern, v); });
    if (v.status == Status::refused && entry == list.end()) {
      unlisted[v.backend][kind_of(v.reason)].add(v, v.reason);
    } else if (v.status != Status::refused && entry != list.end()) {
      outdated[v.backend][entry->pattern].add(v, "listed as \"" + entry->pattern + "\"");
    }
  }
  std::vector<std::string> problems;
  for (const auto& [backend, groups] : unlisted) {
    const fs::path path = list_path(backend, "expected_refusals");
    const bool listed = fs::exists(path);
    if (listed) complain(backend + " refuses what its list does not hold", groups, problems);
    problems.push_back(fmt::format(
        "{} {}; --write-refusals {} writes it, and $ATTEST_LISTS names another folder for "
        "backends from elsewhere",
        backend + (listed ? "'s list of refusals is" : " refuses cases of committed suites, and has no list of them,"),
        path.string(), shell_quoted(path.parent_path().parent_path().string())));
  }
  for (const auto& [backend, groups] : outdated) complain(backend + " no longer refuses", groups, problems);
  return problems;
}

std::vector<std::string> refusal_list(const std::vector<Verdict>& verdicts, const std::string& backend) {
  Refused refused;
  std::set<std::string> kept;  // features of cases that are not refused
  for (const Verdict& v : verdicts) {
    if (v.backend != backend) continue;
    if (v.status == Status::refused) {
      refused.push_back(&v);
    } else {
      kept.merge(features(line_of(v)));
    }
  }
  std::vector<std::string> lines;
  while (true) {
    const auto [pattern, cases] = widest_pattern(refused, kept);
    if (cases.size() < kWorthAPattern) break;
    lines.push_back(pattern + "  # " + usual_reason(cases));
    const std::set<const Verdict*> covered(cases.begin(), cases.end());
    std::erase_if(refused, [&](const Verdict* v) { return covered.contains(v); });
  }
  for (const Verdict* v : refused) lines.push_back(name_in_list(*v) + "  # " + v->reason);
  return lines;
}

std::vector<fs::path> write_refusals(const fs::path& folder, const std::vector<Verdict>& verdicts) {
  std::set<std::string> backends;
  for (const Verdict& v : verdicts) {
    if (v.backend != "reference") backends.insert(v.backend);
  }
  std::vector<fs::path> paths;
  for (const std::string& backend : backends) {
    const fs::path path = folder / backend / "expected_refusals";
    std::vector<std::string> lines;
    for (const ListedCase& entry : read_list(path)) {
      const bool ran = std::any_of(verdicts.begin(), verdicts.end(),
                                   [&](const Verdict& v) { return v.backend == backend && matches(entry.pattern, v); });
      if (!ran) lines.push_back(entry.comment.empty() ? entry.pattern : entry.pattern + "  # " + entry.comment);
    }
    const std::vector<std::string> found = refusal_list(verdicts, backend);
    lines.insert(lines.end(), found.begin(), found.end());
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error)
      throw UserError("--write-refusals " + folder.string() + ": " + error.message() + "; name another folder");
    OutputFile file(path);
    file.stream() << "# Cases of committed suites that " << backend
                  << " refuses, as attest check --write-refusals saw.\n";
    for (const std::string& line : lines) file.stream() << line << '\n';
    file.finish();
    paths.push_back(path);
  }
  return paths;
}

}  // namespace attest

#include "harness/run/last_failures.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "harness/base/text_file.h"
#include "harness/base/user_error.h"
#include "harness/report/run_header.h"

namespace attest {
namespace {

constexpr std::uintmax_t kMaxLastRunBytes = std::uintmax_t{4} << 30;
constexpr std::size_t kMaxLastRunLineBytes = 1 << 20;

}  // namespace

LastFailures::LastFailures(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  std::ifstream file = open_text(path, kMaxLastRunBytes);
  bool header = false;
  for (Line line; read_line(file, line, kMaxLastRunLineBytes);) {
    const OrderedJson json = OrderedJson::parse(line.text, nullptr, false);
    if (!json.is_object()) continue;
    if (is_run_header(json)) {
      require_known_schema(json, path.string());
      header = true;
    } else if (std::optional<Verdict> verdict = verdict_from_json(json); header && verdict && is_failure(*verdict)) {
      cases_.emplace(verdict->suite, verdict->case_line);
      verdicts_.push_back(std::move(*verdict));
    }
  }
  if (!header) throw UserError(path.string() + ": is no file of verdicts, so it tells no failures; name another file");
}

bool LastFailures::has(const CaseList& list, const Case& one) const { return cases_.contains({list.suite, one.label}); }

std::size_t LastFailures::cases_in(const std::vector<CaseList>& lists) const {
  std::size_t count = 0;
  for (const CaseList& list : lists) {
    count += static_cast<std::size_t>(
        std::count_if(list.cases.begin(), list.cases.end(), [&](const Case& one) { return has(list, one); }));
  }
  return count;
}

void LastFailures::keep(std::vector<CaseList>& lists) const {
  if (cases_in(lists) == 0) return;
  for (CaseList& list : lists) std::erase_if(list.cases, [&](const Case& one) { return !has(list, one); });
  std::erase_if(lists, [](const CaseList& list) { return list.cases.empty(); });
}

void LastFailures::put_first(std::vector<CaseList>& lists) const {
  for (CaseList& list : lists) {
    std::stable_partition(list.cases.begin(), list.cases.end(), [&](const Case& one) { return has(list, one); });
  }
  std::stable_partition(lists.begin(), lists.end(),
                        [&](const CaseList& list) { return !list.cases.empty() && has(list, list.cases.front()); });
}

void LastFailures::hold_in(EarlierRun& earlier) const {
  for (const Verdict& verdict : verdicts_) earlier.hold(verdict);
}

}  // namespace attest

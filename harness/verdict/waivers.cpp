#include "harness/verdict/waivers.h"

#include <map>
#include <mutex>

#include "harness/base/user_error.h"

namespace attest {
namespace {

const std::vector<ListedCase>& waivers_of(const std::string& backend) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<ListedCase>> lists;
  const std::lock_guard lock(mutex);
  const auto found = lists.find(backend);
  if (found != lists.end()) return found->second;
  std::vector<ListedCase> list = listed_cases(backend, "waivers");
  for (const ListedCase& entry : list) {
    if (entry.comment.empty()) {
      throw UserError("backends/" + backend + "/waivers: " + entry.pattern + ": say why behind a #");
    }
  }
  return lists.emplace(backend, std::move(list)).first->second;
}

}  // namespace

void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers) {
  if (verdict.status != Status::suspect) return;
  if (const ListedCase* entry = find_case(waivers, verdict.case_line)) verdict.waiver = entry->comment;
}

void apply_waiver(Verdict& verdict) { apply_waiver(verdict, waivers_of(verdict.backend)); }

}  // namespace attest

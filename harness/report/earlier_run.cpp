#include "harness/report/earlier_run.h"

#include <fstream>

#include "harness/base/machine.h"
#include "harness/base/user_error.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string key_of(const std::string& suite, const std::string& case_line, const std::string& backend) {
  return suite + '\n' + case_line + '\n' + backend;
}

std::string text(const OrderedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

EarlierRun::EarlierRun(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) read(path);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string prefix = path.filename().string() + ".part";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    read(entry.path());
    parts_.push_back(entry.path());
  }
}

void EarlierRun::read(const fs::path& path) {
  std::ifstream file(path);
  read(file, path.string());
}

void EarlierRun::read(std::istream& file, const std::string& name) {
  std::string line;
  bool header = false;
  while (std::getline(file, line)) {
    const OrderedJson json = OrderedJson::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    if (text(json, kKindKey) == kRunKind) {
      header = true;
      if (text(json, kCommitKey) != build_commit()) {
        throw UserError(name + ": comes from another build of attest (" + text(json, kCommitKey) +
                        "); remove it, or leave out --resume");
      }
    } else if (std::optional<Verdict> verdict = verdict_from_json(json); header && verdict) {
      if (is_failure(*verdict)) verdict->cause = "of the run before";
      std::string key = key_of(verdict->suite, verdict->case_line, verdict->backend);
      verdicts_.insert_or_assign(std::move(key), std::move(*verdict));
    }
  }
}

std::optional<Verdict> EarlierRun::find(const std::string& suite, const std::string& case_line,
                                        const std::string& backend) const {
  const auto found = verdicts_.find(key_of(suite, case_line, backend));
  if (found == verdicts_.end()) return std::nullopt;
  return found->second;
}

void EarlierRun::remove_parts() const {
  std::error_code error;
  for (const fs::path& part : parts_) fs::remove(part, error);
}

}  // namespace attest

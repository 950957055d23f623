#include "harness/report/earlier_run.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/machine.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string key_of(const std::string& suite, const std::string& case_line, const std::string& backend) {
  return suite + '\n' + case_line + '\n' + backend;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Numbers that JSON has no sign for are strings.
double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string name = json.is_string() ? json.get<std::string>() : "";
  return name == "inf" ? kInfinity : name == "-inf" ? -kInfinity : kNaN;
}

std::optional<Status> status_of(const std::string& name) {
  for (Status status : {Status::pass, Status::fail, Status::refused, Status::mistrusted, Status::suspect,
                        Status::crashed, Status::timeout}) {
    if (name == name_of(status)) return status;
  }
  return std::nullopt;
}

std::optional<Verdict> verdict_from(const Json& json) {
  const auto status = status_of(text(json, "status"));
  if (!status) return std::nullopt;
  Verdict v;
  v.suite = text(json, "suite");
  v.case_line = text(json, "case");
  v.backend = text(json, "backend");
  v.status = *status;
  v.reason = text(json, "reason");
  v.waiver = text(json, "waiver");
  v.cause = is_failure(v) ? "of the run before" : "";
  v.repro = text(json, "repro");
  if (json.contains("error_over_bound") && !json["error_over_bound"].is_null()) {
    v.error_over_bound = number(json["error_over_bound"]);
  }
  if (json.contains("error_over_sigma")) v.error_over_sigma = number(json["error_over_sigma"]);
  if (json.contains("worst") && json["worst"].is_object()) {
    const Json& w = json["worst"];
    v.worst = WorstElement{text(w, "output"), w.value("index", std::array<std::int64_t, 4>{}), number(w.at("got")),
                           number(w.at("expected")), number(w.at("bound"))};
  }
  if (json.contains("bitwise") && json["bitwise"].is_object()) {
    const auto fact = [&](const char* key) -> std::optional<bool> {
      const Json& bitwise = json["bitwise"];
      if (!bitwise.contains(key) || !bitwise[key].is_boolean()) return std::nullopt;
      return bitwise[key].get<bool>();
    };
    v.bitwise = BitwiseFacts{fact("runs"), fact("threads"), fact("batch")};
  }
  v.rows_checked = json.value("rows_checked", std::int64_t{0});
  v.rows = json.value("rows", std::int64_t{0});
  if (json.contains("seconds")) {
    const Json& s = json["seconds"];
    v.seconds = {s.value("prepare", 0.0), s.value("upload", 0.0), s.value("run", 0.0), s.value("download", 0.0)};
  }
  return v;
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
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.is_object()) continue;
    if (text(json, "kind") == "run") {
      header = true;
      if (text(json, "commit") != build_commit()) {
        throw UserError(name + ": comes from another build of attest (" + text(json, "commit") +
                        "); remove it, or leave out --resume");
      }
    } else if (header && text(json, "kind") == "verdict") {
      try {
        if (auto verdict = verdict_from(json)) {
          verdicts_.insert_or_assign(key_of(verdict->suite, verdict->case_line, verdict->backend), std::move(*verdict));
        }
      } catch (const Json::exception&) {
        continue;  // a verdict that can't be read is found again
      }
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

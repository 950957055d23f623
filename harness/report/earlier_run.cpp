#include "harness/report/earlier_run.h"

#include <utility>

#include "harness/base/output_file.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"
#include "harness/report/run_header.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// More than any run writes: the whole matrix on five backends takes 20 MiB, the longest line some kilobytes.
constexpr std::uintmax_t kMaxEarlierRunBytes = std::uintmax_t{4} << 30;
constexpr std::size_t kMaxEarlierLineBytes = 1 << 20;

std::string key_of(const std::string& suite, const std::string& case_line, const std::string& content,
                   const std::string& backend) {
  return suite + '\n' + case_line + '\n' + content + '\n' + backend;
}

std::string key_of(const Verdict& v) { return key_of(v.suite, v.case_line, v.content, v.backend); }

}  // namespace

EarlierRun::EarlierRun(const fs::path& path, Conditions now) : EarlierRun(std::move(now)) {
  std::error_code error;
  if (fs::exists(path, error) && fs::file_size(path, error) > 0) {
    std::ifstream file = open_text(path, kMaxEarlierRunBytes);
    Line first;
    read_line(file, first, kMaxEarlierLineBytes);
    if (!is_run_header(OrderedJson::parse(first.text, nullptr, false))) {
      throw UserError(path.string() + ": is no file of verdicts, so there is nothing to go on from; name another file");
    }
    file.seekg(0);
    read(file, path.string());
  }
  parts_ = unfinished_parts(path);
  for (const fs::path& part : parts_) {
    std::ifstream file = open_text(part, kMaxEarlierRunBytes);
    read(file, part.string());
  }
}

void EarlierRun::read(std::istream& file, const std::string& name) {
  bool header = false;
  for (Line line; read_line(file, line, kMaxEarlierLineBytes);) {
    const OrderedJson json = OrderedJson::parse(line.text, nullptr, false);
    if (!json.is_object()) continue;
    if (is_run_header(json)) {
      header = true;
      require_known_schema(json, name);
      if (const auto other = difference(run_header_from_json(json).conditions, now_)) {
        throw UserError(name + ": can't go on from here: " + *other +
                        "; leave out --resume to begin anew, or name another file");
      }
    } else if (std::optional<Verdict> verdict = verdict_from_json(json); header && verdict) {
      if (is_failure(*verdict) && verdict->cause.empty()) verdict->cause = {Cause::other, "of the run before"};
      const auto [place, fresh] = verdicts_.try_emplace(key_of(*verdict));
      if (fresh || !is_failure(place->second.verdict)) place->second.verdict = std::move(*verdict);
    }
  }
}

const Verdict* EarlierRun::find(const std::string& suite, const std::string& case_line, const std::string& content,
                                const std::string& backend) const {
  const auto found = verdicts_.find(key_of(suite, case_line, content, backend));
  return found == verdicts_.end() || found->second.again ? nullptr : &found->second.verdict;
}

void EarlierRun::hold(Verdict verdict) {
  if (verdict.cause.empty()) verdict.cause = {Cause::other, "of the run before"};
  std::string key = key_of(verdict);
  verdicts_.try_emplace(std::move(key), Held{std::move(verdict), false, true});
}

void EarlierRun::take(const Verdict& verdict) {
  const auto found = verdicts_.find(key_of(verdict));
  if (found == verdicts_.end() || std::exchange(found->second.taken, true)) return;
  if (!found->second.again) ++taken_;
}

std::vector<Verdict> EarlierRun::left() const {
  std::vector<Verdict> list;
  for (const auto& [key, held] : verdicts_) {
    if (!held.taken) list.push_back(held.verdict);
  }
  return list;
}

void EarlierRun::remove_parts() const {
  std::error_code error;
  for (const fs::path& part : parts_) fs::remove(part, error);
}

}  // namespace attest

#include "harness/report/judgements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/base/schema.h"
#include "harness/base/table.h"
#include "harness/base/text.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

constexpr std::uintmax_t kMaxJudgementBytes = std::uintmax_t{1} << 28;
constexpr std::size_t kMaxJudgementLine = 1 << 20;
constexpr std::size_t kMostOfReason = 60;  ///< bytes in a table

std::optional<double> number_in(const OrderedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::size_t count_in(const OrderedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::size_t>() : 0;
}

RankedSpeed speed_from(const OrderedJson& json) {
  RankedSpeed speed;
  speed.case_line = text_of(json, "case");
  speed.reason = text_of(json, "reason");
  speed.seconds = number_in(json, "seconds");
  if (const auto interval = json.find("interval"); interval != json.end() && interval->is_object()) {
    speed.low = number_in(*interval, "low");
    speed.high = number_in(*interval, "high");
  }
  speed.roof_fraction = number_in(json, "roof_fraction");
  speed.speedup = number_in(json, "speedup");
  return speed;
}

/// The lower the better.
int class_of(const RankedSubmission& one) {
  if (one.verdict == "pass") return one.speedup ? 0 : 1;
  if (one.verdict == "unproven") return 2;
  return one.verdict == "fail" ? 3 : 4;
}

std::string cut(const std::string& text) {
  const std::string line = printable_line(text);
  if (line.size() <= kMostOfReason) return line;
  std::size_t end = kMostOfReason - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;  // characters stay whole
  return line.substr(0, end) + "...";
}

}  // namespace

bool is_judgement(const OrderedJson& json) { return json.is_object() && text_of(json, kKindKey) == kJudgementKind; }

RankedSubmission judgement_from_json(const OrderedJson& json) {
  RankedSubmission one;
  for (const auto& [key, member] : {std::pair{"submission", &RankedSubmission::submission},
                                    {"content", &RankedSubmission::content},
                                    {"task", &RankedSubmission::task},
                                    {"task_content", &RankedSubmission::task_content},
                                    {"seed", &RankedSubmission::seed},
                                    {"backend", &RankedSubmission::backend},
                                    {"verdict", &RankedSubmission::verdict},
                                    {"reason", &RankedSubmission::reason},
                                    {"failing_case", &RankedSubmission::failing_case},
                                    {"baseline", &RankedSubmission::baseline},
                                    {"sandbox", &RankedSubmission::sandbox},
                                    {"attest", &RankedSubmission::attest}}) {
    one.*member = text_of(json, key);
  }
  one.speedup = number_in(json, "speedup");
  one.worst_error_over_bound = number_in(json, "worst_error_over_bound");
  one.seconds = number_in(json, "seconds").value_or(0);
  if (const auto cases = json.find("cases"); cases != json.end() && cases->is_object()) {
    one.passed = count_in(*cases, "passed");
    one.cases = count_in(*cases, "drawn");
  }
  if (const auto speeds = json.find("speeds"); speeds != json.end() && speeds->is_array()) {
    for (const OrderedJson& speed : *speeds) one.speeds.push_back(speed_from(speed));
  }
  return one;
}

JudgementFile read_judgements(const std::filesystem::path& path) {
  std::ifstream stream = open_text(path, kMaxJudgementBytes);
  JudgementFile file;
  file.name = path.filename().string();
  int number = 0;
  for (Line line; read_line(stream, line, kMaxJudgementLine);) {
    ++number;
    if (stream.eof() && !line.too_long) break;  // without its end: torn
    const OrderedJson json = OrderedJson::parse(line.text, nullptr, false);
    if (line.too_long || !is_judgement(json))
      throw UserError(fmt::format("{}:{}: no line of `attest judge --json`", path.string(), number));
    const auto schema = json.find("schema");
    require_schema(fmt::format("{}:{}", path.string(), number), schema == json.end() ? "" : schema->dump(),
                   kJudgementSchema);
    file.all.push_back(judgement_from_json(json));
    file.complete_bytes = static_cast<std::uintmax_t>(stream.tellg());
  }
  return file;
}

std::vector<RankedSubmission> ranked(std::vector<RankedSubmission> judgements) {
  std::map<std::string, RankedSubmission> last;
  for (RankedSubmission& one : judgements) last[one.submission] = std::move(one);
  std::vector<RankedSubmission> ranking;
  for (auto& [name, one] : last) ranking.push_back(std::move(one));
  std::stable_sort(ranking.begin(), ranking.end(), [](const RankedSubmission& a, const RankedSubmission& b) {
    return std::tuple(class_of(a), -a.speedup.value_or(0)) < std::tuple(class_of(b), -b.speedup.value_or(0));
  });
  return ranking;
}

std::string ranking_table(const std::vector<RankedSubmission>& ranking) {
  Table table({{"rank", true},
               {"submission"},
               {"verdict"},
               {"times as fast", true},
               {"error/bound", true},
               {"cases", true},
               {"s", true},
               {"reason"}});
  std::size_t rank = 0;
  for (const RankedSubmission& one : ranking) {
    ++rank;
    std::string reason = one.reason;
    for (const RankedSpeed& speed : one.speeds) {
      if (reason.empty()) reason = speed.reason;
    }
    table.add({class_of(one) == 0 ? std::to_string(rank) : "", printable_line(one.submission), one.verdict,
               one.speedup ? fmt::format("{:.3g}", *one.speedup) : "",
               one.worst_error_over_bound ? number_words(*one.worst_error_over_bound, 3) : "",
               one.cases > 0 ? fmt::format("{}/{}", one.passed, one.cases) : "", fmt::format("{:.1f}", one.seconds),
               cut(reason)});
  }
  return table.printed(TableFormat::text);
}

}  // namespace attest

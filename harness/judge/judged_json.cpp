#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/fingerprint.h"
#include "harness/judge/judge.h"
#include "harness/report/judgements.h"

namespace attest {
namespace {

using ObjectInOrder = OrderedJson;

constexpr std::size_t kDigitsOfMark = 8;

/// JSON has no infinity.
ObjectInOrder number(double value) { return std::isfinite(value) ? ObjectInOrder(value) : ObjectInOrder(nullptr); }

ObjectInOrder speed_json(const JudgedSpeed& one) {
  ObjectInOrder json = {{"case", one.case_line}, {"weight", one.weight}};
  if (one.wrong.empty()) {
    json["seconds"] = one.seconds;
    json["interval"] = {
        {"low", one.interval.low}, {"high", one.interval.high}, {"confidence", one.interval.confidence}};
    json["threads"] = one.threads;
    if (one.roof_fraction > 0) json["roof_fraction"] = one.roof_fraction;
    if (one.baseline_seconds > 0) json["speedup"] = one.baseline_seconds / one.seconds;
  } else {
    json["no_speed"] = name_of(one.wrong.kind);
    json["reason"] = one.wrong.text;
  }
  if (one.baseline_seconds > 0) json["baseline_seconds"] = one.baseline_seconds;
  return json;
}

}  // namespace

std::string mark_of_seed(std::uint64_t seed) {
  Fingerprint mark;
  mark.add("seed of attest judge " + std::to_string(seed));
  return mark.text().substr(0, kDigitsOfMark);
}

std::string json_of(const JudgedSubmission& judged, const Task& task, std::uint64_t seed, bool one_line) {
  const Counts& c = judged.counts;
  ObjectInOrder json = {{kKindKey, kJudgementKind},          {"schema", kJudgementSchema}, {"attest", ATTEST_VERSION},
                        {"submission", judged.submission},   {"content", judged.content},  {"task", task.name},
                        {"task_content", task.content},      {"seed", mark_of_seed(seed)}, {"backend", judged.name},
                        {"verdict", name_of(judged.verdict)}};
  if (!judged.reason.empty()) json["reason"] = judged.reason;
  if (judged.verdict != Judged::invalid) {
    json["cases"] = {{"drawn", judged.drawn}, {"passed", c.passed()},          {"failed", c.fail + c.flaky},
                     {"crashed", c.crashed},  {"timeout", c.timeout},          {"suspect", c.suspect},
                     {"refused", c.refused},  {"inconclusive", c.inconclusive}};
    json["worst_error_over_bound"] = number(judged.worst_error_over_bound);
    if (!judged.failing_line.empty()) json["failing_case"] = judged.failing_line;
    json["sandbox"] = judged.sandbox;
  }
  if (!judged.speeds.empty()) {
    json["baseline"] = judged.baseline;
    json["speeds"] = ObjectInOrder::array();
    for (const JudgedSpeed& one : judged.speeds) json["speeds"].push_back(speed_json(one));
    const std::optional<double> speedup = judged.speedup();
    json["speedup"] = speedup ? ObjectInOrder(*speedup) : ObjectInOrder(nullptr);
  }
  json["seconds"] = judged.seconds;
  return json.dump(one_line ? -1 : 2, ' ', false, ObjectInOrder::error_handler_t::replace);
}

}  // namespace attest

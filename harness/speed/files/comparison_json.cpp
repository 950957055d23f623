#include "harness/speed/files/comparison_json.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "harness/base/json_fields.h"
#include "harness/base/schema.h"
#include "harness/speed/files/benchmark_file.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// The file itself, or the first of a folder.
fs::path one_of(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  const std::vector<fs::path> files = benchmark_paths(path);
  return files.empty() ? path : files.front();
}

ComparisonSide side_of(const fs::path& path) {
  const BenchmarkFile file = read_benchmark(one_of(path));
  const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return {name.string(),        file.text("commit"), file.text("cpu"),
          file.text("threads"), file.text("build"),  file.text("date")};
}

std::optional<SpeedVerdict> verdict_named(const std::string& name) {
  for (SpeedVerdict v : {SpeedVerdict::faster, SpeedVerdict::slower, SpeedVerdict::same, SpeedVerdict::ambiguous}) {
    if (name == name_of(v)) return v;
  }
  return std::nullopt;
}

OrderedJson to_json(const ComparisonSide& side) {
  return {{"name", side.name},       {"commit", side.commit}, {"cpu", side.cpu},
          {"threads", side.threads}, {"build", side.build},   {"date", side.date}};
}

ComparisonSide side_from(const OrderedJson& json, const std::string& place) {
  const JsonFields fields(json, place);
  return {fields.text("name"),    fields.text("commit"), fields.text("cpu"),
          fields.text("threads"), fields.text("build"),  fields.text("date")};
}

ComparisonLine line_from(const OrderedJson& json, const std::string& place) {
  const JsonFields fields(json, place);
  ComparisonLine line;
  line.backend = fields.text("backend");
  line.case_line = fields.text("case");
  const auto verdict = verdict_named(fields.text("verdict"));
  if (!verdict) fields.fail("has no verdict that is known");
  line.verdict = *verdict;
  line.interval = {fields.number("ratio"), fields.number("low"), fields.number("high"), fields.number("confidence")};
  for (const double end : {line.interval.ratio, line.interval.low, line.interval.high}) {
    if (!(end > 0) || !std::isfinite(end)) fields.fail("has a ratio that is not above 0");
  }
  line.before = fields.count("before");
  line.now = fields.count("now");
  line.disturbed = fields.flag("disturbed");
  return line;
}

}  // namespace

SpeedVerdict verdict_on(const ComparedCase& one, double confidence, double margin) {
  return one.interval.confidence >= confidence && !one.disturbed ? judge(one.interval, margin)
                                                                 : SpeedVerdict::ambiguous;
}

ComparisonFile comparison_file(const SpeedComparison& comparison, const fs::path& before, const fs::path& now,
                               double confidence, double margin) {
  ComparisonFile file;
  file.paired = comparison.paired;
  file.margin = margin;
  file.confidence = confidence;
  file.before = side_of(before);
  file.now = side_of(now);
  for (const auto& [key, one] : comparison.cases) {
    const auto [backend, line] = backend_and_case(key);
    file.lines.push_back(
        {backend, line, verdict_on(one, confidence, margin), one.interval, one.before, one.now, one.disturbed});
  }
  file.only_before = comparison.only_before;
  file.only_now = comparison.only_now;
  file.unlike = comparison.unlike;
  return file;
}

OrderedJson comparison_to_json(const ComparisonFile& file) {
  OrderedJson json = {{"kind", kComparisonKind},       {"schema", kComparisonSchema},    {"attest", file.attest},
                      {"command", file.command},       {"paired", file.paired},          {"margin", file.margin},
                      {"confidence", file.confidence}, {"before", to_json(file.before)}, {"now", to_json(file.now)}};
  json["cases"] = OrderedJson::array();
  for (const ComparisonLine& line : file.lines) {
    json["cases"].push_back({{"backend", line.backend},
                             {"case", line.case_line},
                             {"verdict", name_of(line.verdict)},
                             {"ratio", line.interval.ratio},
                             {"low", line.interval.low},
                             {"high", line.interval.high},
                             {"confidence", line.interval.confidence},
                             {"before", line.before},
                             {"now", line.now},
                             {"disturbed", line.disturbed}});
  }
  json["only_before"] = file.only_before;
  json["only_now"] = file.only_now;
  json["unlike"] = file.unlike;
  return json;
}

ComparisonFile comparison_from_json(const OrderedJson& json, const std::string& name) {
  const JsonFields fields(json, name + ": the comparison");
  require_schema(name, fields.at("schema").dump(), kComparisonSchema);
  ComparisonFile file;
  file.attest = fields.text("attest");
  file.command = fields.text("command");
  file.paired = fields.flag("paired");
  file.margin = fields.number("margin");
  file.confidence = fields.number("confidence");
  file.before = side_from(fields.at("before"), name + ": \"before\"");
  file.now = side_from(fields.at("now"), name + ": \"now\"");
  std::size_t number = 0;
  for (const OrderedJson& one : fields.list("cases"))
    file.lines.push_back(line_from(one, fmt::format("{}: number {} of \"cases\"", name, ++number)));
  file.only_before = fields.texts("only_before");
  file.only_now = fields.texts("only_now");
  file.unlike = fields.texts("unlike");
  return file;
}

}  // namespace attest

#include "harness/speed/comparison_json.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/speed/benchmark_file.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The file itself, or the first of a folder.
fs::path one_of(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  return files.empty() ? path : *files.begin();
}

ComparisonSide side_of(const fs::path& path) {
  const std::map<std::string, std::string> context = read_benchmark(one_of(path)).context;
  const auto text = [&](const char* key) {
    const auto found = context.find(key);
    return found == context.end() ? std::string() : found->second;
  };
  const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return {name.string(), text("commit"), text("cpu"), text("threads"), text("build"), text("date")};
}

std::optional<SpeedVerdict> verdict_named(const std::string& name) {
  for (SpeedVerdict v : {SpeedVerdict::faster, SpeedVerdict::slower, SpeedVerdict::same, SpeedVerdict::ambiguous}) {
    if (name == name_of(v)) return v;
  }
  return std::nullopt;
}

Json to_json(const ComparisonSide& side) {
  return {{"name", side.name},       {"commit", side.commit}, {"cpu", side.cpu},
          {"threads", side.threads}, {"build", side.build},   {"date", side.date}};
}

/// Fields of an object, each of which must be there and of its type.
class Fields {
 public:
  Fields(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) fail("is no object");
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(fmt::format("has a \"{}\" that is no text", key));
    return printable_line(value.get<std::string>());
  }
  double number(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number()) fail(fmt::format("has a \"{}\" that is no number", key));
    return value.get<double>();
  }
  bool flag(const char* key) const {
    const Json& value = at(key);
    if (!value.is_boolean()) fail(fmt::format("has a \"{}\" that is neither true nor false", key));
    return value.get<bool>();
  }
  const Json& list(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) fail(fmt::format("has a \"{}\" that is no list", key));
    return value;
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> all;
    for (const Json& one : list(key)) {
      if (!one.is_string()) fail(fmt::format("has a \"{}\" with what is no text", key));
      all.push_back(printable_line(one.get<std::string>()));
    }
    return all;
  }
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("has no \"{}\"", key));
    return *found;
  }
  [[noreturn]] void fail(const std::string& what) const { throw UserError(place_ + " " + what); }

 private:
  const Json& json_;
  std::string place_;
};

ComparisonSide side_from(const Json& json, const std::string& place) {
  const Fields fields(json, place);
  return {fields.text("name"),    fields.text("commit"), fields.text("cpu"),
          fields.text("threads"), fields.text("build"),  fields.text("date")};
}

ComparisonLine line_from(const Json& json, const std::string& place) {
  const Fields fields(json, place);
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
  for (const auto& [key, place_of] : {std::pair{"before", &line.before}, std::pair{"now", &line.now}}) {
    const double count = fields.number(key);
    if (!(count >= 0 && count < 1e15)) fields.fail(fmt::format("has a \"{}\" that is no count", key));
    *place_of = static_cast<std::size_t>(count);
  }
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
    const std::size_t space = key.find(' ');
    file.lines.push_back({key.substr(0, space), trimmed(key.substr(space)), verdict_on(one, confidence, margin),
                          one.interval, one.before, one.now, one.disturbed});
  }
  file.only_before = comparison.only_before;
  file.only_now = comparison.only_now;
  file.unlike = comparison.unlike;
  return file;
}

Json comparison_to_json(const ComparisonFile& file) {
  Json json = {{"kind", kComparisonKind},       {"schema", kComparisonSchema},    {"attest", file.attest},
               {"command", file.command},       {"paired", file.paired},          {"margin", file.margin},
               {"confidence", file.confidence}, {"before", to_json(file.before)}, {"now", to_json(file.now)}};
  json["cases"] = Json::array();
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

ComparisonFile comparison_from_json(const Json& json, const std::string& name) {
  const Fields fields(json, name + ": the comparison");
  const double schema = fields.number("schema");
  if (schema > kComparisonSchema) {
    throw UserError(
        fmt::format("{}: schema {:g} of a newer attest; this one reads up to {}", name, schema, kComparisonSchema));
  }
  ComparisonFile file;
  file.attest = fields.text("attest");
  file.command = fields.text("command");
  file.paired = fields.flag("paired");
  file.margin = fields.number("margin");
  file.confidence = fields.number("confidence");
  file.before = side_from(fields.at("before"), name + ": \"before\"");
  file.now = side_from(fields.at("now"), name + ": \"now\"");
  std::size_t number = 0;
  for (const Json& one : fields.list("cases"))
    file.lines.push_back(line_from(one, fmt::format("{}: number {} of \"cases\"", name, ++number)));
  file.only_before = fields.texts("only_before");
  file.only_now = fields.texts("only_now");
  file.unlike = fields.texts("unlike");
  return file;
}

}  // namespace attest

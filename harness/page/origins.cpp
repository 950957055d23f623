// Where the results of a page come from: command, machine, versions, commit.
#include <fmt/format.h>

#include "backends/identity.h"
#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

SectionJson fact(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", printable_line(value)}};
}

/// Where a file comes from: beside every number that is shown.
SectionJson origin_json(const std::string& file, const std::string& kind, const SectionJson& facts) {
  SectionJson kept = SectionJson::array();
  for (const SectionJson& one : facts) {
    if (!one["value"].get<std::string>().empty()) kept.push_back(one);
  }
  return {{"file", printable_line(file)}, {"kind", kind}, {"facts", kept}};
}

std::string number_text(const OrderedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? fmt::format("{:.4g}", found->get<double>()) : "";
}

SectionJson origin_of(const CheckResults& check) {
  const OrderedJson& header = check.header;
  std::vector<std::string> command;
  if (const auto words = header.find("command"); words != header.end() && words->is_array()) {
    for (const OrderedJson& word : *words) {
      if (word.is_string()) command.push_back(word.get<std::string>());
    }
  }
  const OrderedJson machine = header.value("machine", OrderedJson::object());
  SectionJson facts = {fact("command", shell_line(command)),
                       fact("attest", text_of(header, "attest")),
                       fact("commit", text_of(header, "commit")),
                       fact("processor", machine.is_object() ? text_of(machine, "cpu") : ""),
                       fact("cores", machine.is_object() ? number_text(machine, "cores") : ""),
                       fact("memory, GiB", machine.is_object() ? number_text(machine, "memory_gib") : ""),
                       fact("system", machine.is_object() ? text_of(machine, "system") : ""),
                       fact("build", machine.is_object() ? text_of(machine, "build") : ""),
                       fact("time, s", fmt::format("{:.4g}", check.seconds))};
  if (const auto backends = header.find("backends"); backends != header.end() && backends->is_array()) {
    for (const OrderedJson& b : *backends) {
      const Identity id{"", text_of(b, "library"), text_of(b, "device"), {}, text_of(b, "parameters")};
      facts.push_back(fact("backend " + printable_line(text_of(b, "name")), description(id)));
    }
  }
  if (const auto missing = header.find("unavailable"); missing != header.end() && missing->is_array()) {
    for (const OrderedJson& b : *missing)
      facts.push_back(fact("not available: " + printable_line(text_of(b, "name")), text_of(b, "reason")));
  }
  return origin_json(check.name, "check", facts);
}

SectionJson origin_of(const BenchResults& bench) {
  SectionJson facts = SectionJson::array();
  for (const char* key : {"command", "attest", "commit", "date", "cpu", "build", "threads", "repetitions", "seed"})
    facts.push_back(fact(key, bench.file.text(key)));
  for (const auto& [key, value] : bench.file.context) {
    if (key.starts_with("roof_")) facts.push_back(fact(key, value));
    if (key.starts_with("backend_")) facts.push_back(fact("backend " + key.substr(8), value));
  }
  facts.push_back(fact("timed apart", bench.file.text(kTimedApartKey)));
  facts.push_back(fact("sandbox", bench.file.text(kSandboxKey)));
  return origin_json(bench.name, "bench", facts);
}

SectionJson origin_of(const CompareResults& one) {
  return origin_json(one.name, "compare",
                     {fact("command", one.file.command), fact("attest", one.file.attest),
                      fact("old commit", one.file.before.commit), fact("new commit", one.file.now.commit),
                      fact("processor", one.file.now.cpu), fact("build", one.file.now.build)});
}

SectionJson origin_of(const JudgementFile& file) {
  SectionJson facts = SectionJson::array({fact("judgements", std::to_string(file.all.size()))});
  if (!file.all.empty()) {
    facts.push_back(fact("attest", file.all.back().attest));
    facts.push_back(fact("sandbox", file.all.back().sandbox));
  }
  return origin_json(file.name, "judge", facts);
}

}  // namespace

SectionJson origins(const ResultFiles& results) {
  SectionJson list = SectionJson::array();
  for (const CheckResults& one : results.checks) list.push_back(origin_of(one));
  for (const BenchResults& one : results.benches) list.push_back(origin_of(one));
  for (const CompareResults& one : results.comparisons) list.push_back(origin_of(one));
  for (const JudgementFile& one : results.judgements) list.push_back(origin_of(one));
  return list;
}

}  // namespace attest

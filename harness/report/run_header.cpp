#include "harness/report/run_header.h"

#include <concepts>

namespace attest {
namespace {

OrderedJson to_json(const Machine& m) {
  return {{"cpu", m.cpu}, {"cores", m.cores}, {"memory_gib", m.memory_gib}, {"system", m.system}, {"build", m.build}};
}

OrderedJson to_json(const CaseSelection& selection) {
  OrderedJson json = {
      {"fingerprint", selection.fingerprint}, {"cases", selection.cases}, {"verdicts", selection.verdicts}};
  if (!selection.shard.empty()) json["shard"] = selection.shard;
  return json;
}

OrderedJson to_json(const RunPart& part) {
  OrderedJson json = {{"file", part.file}};
  if (!part.shard.empty()) json["shard"] = part.shard;
  json["attest"] = part.origin.attest;
  json["commit"] = part.origin.commit;
  json["machine"] = to_json(part.origin.machine);
  json["verdicts"] = part.verdicts;
  json["seconds"] = part.seconds;
  return json;
}

/// The value behind a key, where there is one: of nothing there is nothing.
const OrderedJson& at(const OrderedJson& json, const char* key) {
  static const OrderedJson kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(key);
  return found == json.end() ? kNothing : *found;
}

double number_of(const OrderedJson& json, const char* key) {
  const OrderedJson& value = at(json, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::size_t count_of(const OrderedJson& value) { return value.is_number_unsigned() ? value.get<std::size_t>() : 0; }

Origin origin_from(const OrderedJson& json) {
  const OrderedJson& m = at(json, "machine");
  const OrderedJson& cores = at(m, "cores");
  Origin origin{text_of(json, "attest"), text_of(json, "commit"), {}};
  origin.machine = {text_of(m, "cpu"), cores.is_number_integer() ? cores.get<int>() : 0, number_of(m, "memory_gib"),
                    text_of(m, "system"), text_of(m, "build")};
  return origin;
}

CaseSelection selection_from(const OrderedJson& json) {
  CaseSelection selection;
  selection.fingerprint = text_of(json, "fingerprint");
  selection.cases = count_of(at(json, "cases"));
  selection.shard = text_of(json, "shard");
  if (const OrderedJson& verdicts = at(json, "verdicts"); verdicts.is_object()) {
    for (const auto& [backend, count] : verdicts.items()) selection.verdicts[backend] = count_of(count);
  }
  return selection;
}

/// Takes what `make` makes of each object of a list.
template <class T>
std::vector<T> list_from(const OrderedJson& json, const std::invocable<const OrderedJson&> auto& make) {
  std::vector<T> list;
  for (const OrderedJson& one : json.is_array() ? json : OrderedJson::array()) list.push_back(make(one));
  return list;
}

}  // namespace

OrderedJson run_header_to_json(const RunInfo& info) {
  const Origin origin =
      info.origin.attest.empty() ? Origin{ATTEST_VERSION, build_commit(), this_machine()} : info.origin;
  OrderedJson header = {
      {kKindKey, kRunKind},      {"schema", kVerdictSchema},           {"attest", origin.attest},
      {"commit", origin.commit}, {"machine", to_json(origin.machine)}, {"backends", OrderedJson::array()}};
  for (const Identity& b : info.backends) {
    header["backends"].push_back({{"name", b.name}, {"library", b.library}, {"device", b.device}});
    if (!b.parameters.empty()) header["backends"].back()["parameters"] = b.parameters;
  }
  header["unavailable"] = OrderedJson::array();
  for (const Unavailable& u : info.unavailable)
    header["unavailable"].push_back({{"name", u.name}, {"reason", u.reason}});
  header["command"] = info.command;
  header[kConditionsKey] = info.conditions;
  header["selection"] = to_json(info.selection);
  for (const RunPart& part : info.parts) header["parts"].push_back(to_json(part));
  return header;
}

RunInfo run_header_from_json(const OrderedJson& header) {
  RunInfo info;
  info.origin = origin_from(header);
  info.selection = selection_from(at(header, "selection"));
  info.backends = list_from<Identity>(at(header, "backends"), [](const OrderedJson& json) {
    return Identity{
        text_of(json, "name"), text_of(json, "library"), text_of(json, "device"), {}, text_of(json, "parameters")};
  });
  info.unavailable = list_from<Unavailable>(at(header, "unavailable"), [](const OrderedJson& json) {
    return Unavailable{text_of(json, "name"), text_of(json, "reason")};
  });
  info.command = list_from<std::string>(at(header, "command"), [](const OrderedJson& json) {
    return json.is_string() ? json.get<std::string>() : std::string();
  });
  if (const OrderedJson& conditions = at(header, kConditionsKey); conditions.is_object()) {
    for (const auto& [name, value] : conditions.items()) {
      if (value.is_string()) info.conditions[name] = value.get<std::string>();
    }
  }
  info.parts = list_from<RunPart>(at(header, "parts"), [](const OrderedJson& json) {
    return RunPart{text_of(json, "file"), text_of(json, "shard"), origin_from(json), count_of(at(json, "verdicts")),
                   number_of(json, "seconds")};
  });
  return info;
}

}  // namespace attest

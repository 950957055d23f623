#include "harness/page/kill_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "harness/base/json_fields.h"
#include "harness/base/schema.h"
#include "harness/base/text.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"
#include "harness/plot/heat_map.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

constexpr std::uintmax_t kMaxKillTableBytes = 16 << 20;  ///< a mistake takes some hundred bytes

Mistake mistake_from(const OrderedJson& json, const std::string& place) {
  const JsonFields fields(json, place);
  Mistake mistake{fields.text("name"), fields.text("text"), {}};
  const OrderedJson& kills = fields.object("kills");
  const JsonFields at(kills, place + ": \"kills\"");
  for (const auto& [suite, unused] : kills.items()) mistake.kills[suite] = at.count(suite.c_str());
  return mistake;
}

MutantSuite suite_from(const OrderedJson& json, const std::string& place) {
  const JsonFields fields(json, place);
  return {fields.text("name"), fields.count("cases"), fields.count("met"), fields.counts("at")};
}

/// "439 mutants: 380 caught by smoke, 12 by bugs; 47 are argued to compute the same"
std::string mutants_in_words(const KillTable& table) {
  std::vector<std::string> parts;
  for (const MutantSuite& suite : table.mutant_suites) {
    if (!suite.at.empty())
      parts.push_back(fmt::format("{} {}by {}", suite.at.size(), parts.empty() ? "caught " : "", suite.name));
  }
  return fmt::format("{} mutants: {}; {} argued to compute the same", table.mutants, join_texts(parts, ", "),
                     table.equivalent);
}

}  // namespace

OrderedJson to_json(const KillTable& table) {
  OrderedJson json = {{"kind", kKillTableKind},   {"schema", kKillTableSchema},
                      {"attest", table.attest},   {"commit", table.commit},
                      {"cpu", table.cpu},         {"command", table.command},
                      {"suites", table.suites},   {"mistakes", OrderedJson::array()},
                      {"mutants", table.mutants}, {"equivalent", table.equivalent}};
  for (const Mistake& mistake : table.mistakes) {
    OrderedJson kills = OrderedJson::object();
    for (const std::string& suite : table.suites) {
      if (const auto kill = mistake.kills.find(suite); kill != mistake.kills.end()) kills[suite] = kill->second;
    }
    json["mistakes"].push_back({{"name", mistake.name}, {"text", mistake.text}, {"kills", kills}});
  }
  json["mutant_suites"] = OrderedJson::array();
  for (const MutantSuite& suite : table.mutant_suites)
    json["mutant_suites"].push_back(
        {{"name", suite.name}, {"cases", suite.cases}, {"met", suite.met}, {"at", suite.at}});
  return json;
}

KillTable kill_table_from_json(const OrderedJson& json, const std::string& name) {
  const JsonFields fields(json, name + ": the kill table");
  require_schema(name, fields.at("schema").dump(), kKillTableSchema);
  KillTable table{fields.text("attest"),   fields.text("commit"),      fields.text("cpu"),
                  fields.text("command"),  fields.texts("suites"),     {},
                  fields.count("mutants"), fields.count("equivalent"), {}};
  std::size_t number = 0;
  for (const OrderedJson& one : fields.list("mistakes"))
    table.mistakes.push_back(mistake_from(one, fields.place_in("mistakes", ++number)));
  number = 0;
  for (const OrderedJson& one : fields.list("mutant_suites"))
    table.mutant_suites.push_back(suite_from(one, fields.place_in("mutant_suites", ++number)));
  return table;
}

KillTable read_kill_table(const std::filesystem::path& path) {
  std::ifstream file = open_text(path, kMaxKillTableBytes);
  const OrderedJson json = OrderedJson::parse(file, nullptr, false);
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  if (!json.is_object() || kind == json.end() || *kind != kKillTableKind)
    throw UserError(path.string() + ": no kill table; `attest mutants --json FILE` writes one");
  return kill_table_from_json(json, path.string());
}

std::string kill_table_svg(const KillTable& table) {
  HeatMap map;
  map.title = "Wrong backends: the case of each suite that catches them";
  map.row_axis = fmt::format("{} mistakes", table.mistakes.size());
  map.column_axis = "hatched: this suite doesn't catch it";
  map.bar = "case of the suite";
  map.counts = true;
  map.cell_width = 62;
  map.cell_height = 18;
  for (const std::string& suite : table.suites) {
    if (std::any_of(table.mistakes.begin(), table.mistakes.end(),
                    [&](const Mistake& m) { return m.kills.contains(suite); }))
      map.columns.push_back(suite);
  }
  for (const Mistake& mistake : table.mistakes) {
    map.rows.push_back(mistake.name);
    std::vector<double>& values = map.values.emplace_back();
    std::vector<double>& hidden = map.hidden.emplace_back();
    for (const std::string& suite : map.columns) {
      const auto kill = mistake.kills.find(suite);
      values.push_back(kill == mistake.kills.end() ? 0 : static_cast<double>(kill->second));
      hidden.push_back(kill == mistake.kills.end() ? 1 : 0);
    }
  }
  map.note = mutants_in_words(table);
  return draw_heat_maps({{map}}, "", map.title + ". " + map.note + ".");
}

}  // namespace attest

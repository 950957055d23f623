#include "harness/relate/relation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "harness/comparison/worst_element.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinities and no NaN: these are text, as in files of verdicts.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace

std::string RelationCount::text() const {
  std::vector<std::string> parts;
  if (fail > 0) parts.push_back(fmt::format("{} FAIL", fail));
  if (bits > 0) parts.push_back(fmt::format("{} bits", bits));
  if (bound > 0) parts.push_back(fmt::format("{} bound ({:.2g})", bound, largest));
  if (parts.empty() && refused > 0) return "refused";
  if (promised) parts.emplace_back("promised");
  return join_texts(parts, ", ");
}

std::string RelationCount::summary() const {
  return fmt::format("{} with the same bits, {} within bounds, {} failed, {} refused", bits, bound, fail, refused);
}

void RelationTally::add(const RelationVerdict& v) {
  for (RelationCount* count : {&counts_[{std::string(v.relation), v.backend}], &all_}) {
    switch (v.status) {
      case RelationStatus::bits: ++count->bits; break;
      case RelationStatus::bound: ++count->bound; break;
      case RelationStatus::fail: ++count->fail; break;
      case RelationStatus::refused: ++count->refused; break;
    }
    count->promised = count->promised || v.promised;
    if (v.found.largest) count->largest = std::max(count->largest, v.found.largest->fraction());
  }
}

std::string RelationTally::table(TableFormat format) const {
  std::vector<Table::Column> columns = {{"relation"}};
  for (const std::string& backend : backends_) columns.push_back({backend});
  Table table(columns);
  for (const Relation& relation : relations()) {
    std::vector<std::string> cells = {std::string(relation.name)};
    bool applied = false;
    for (const std::string& backend : backends_) {
      const auto found = counts_.find({std::string(relation.name), backend});
      applied = applied || found != counts_.end();
      cells.push_back(found == counts_.end() ? "" : found->second.text());
    }
    if (applied) table.add(std::move(cells));
  }
  return table.printed(format);
}

std::string failure_text(const RelationVerdict& v) {
  std::string text = fmt::format("FAIL {}: {}\n  {}\n", v.backend, v.relation, printable_line(v.case_line));
  if (v.other_call != v.case_line || !v.about.empty())
    text += fmt::format("  against {}{}\n", printable_line(v.other_call), v.about.empty() ? "" : ": " + v.about);
  return text + fmt::format("  {}\n  {}\n", printable_line(v.reason), printable_line(v.repro));
}

nlohmann::ordered_json relation_to_json(const RelationVerdict& v) {
  Json json = {{"kind", "relation"},
               {"suite", v.suite},
               {"case", v.case_line},
               {"backend", v.backend},
               {"relation", v.relation},
               {"status", name_of(v.status)},
               {"promised", v.promised},
               {"reason", nullptr},
               {"calls", v.calls},
               {"elements", v.found.elements},
               {"other_bits", v.found.differing}};
  if (!v.reason.empty()) json["reason"] = v.reason;
  if (!v.other_call.empty()) json["other_call"] = v.other_call;
  if (!v.about.empty()) json["about"] = v.about;
  if (const auto& one = v.found.first_outside ? v.found.first_outside : v.found.largest) {
    json["largest"] = number(v.found.largest->fraction());
    json["element"] = {{"output", row_of(one->result).name}, {"index", one->at},
                       {"whole", number(one->whole)},        {"other", number(one->other)},
                       {"expected", number(one->expected)},  {"allowed", number(one->allowed)}};
  }
  json["repro"] = v.repro;
  return json;
}

nlohmann::ordered_json summary_to_json(const RelationCount& all, bool ended_early) {
  Json json = {
      {"kind", "summary"}, {"bits", all.bits}, {"bound", all.bound}, {"fail", all.fail}, {"refused", all.refused}};
  if (ended_early) json["interrupted"] = true;
  return json;
}

}  // namespace attest

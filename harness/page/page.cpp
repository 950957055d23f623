#include "harness/page/page.h"

#include <attest_page_assets.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>
#include <set>

#include "harness/base/machine.h"
#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

namespace mustache = kainjow::mustache;

/// The template's data. An empty list, object or text is false to it.
mustache::data data_of(const SectionJson& json) {
  if (json.is_object()) {
    mustache::data object(mustache::data::type::object);
    for (const auto& [key, value] : json.items()) object.set(key, data_of(value));
    return object;
  }
  if (json.is_array()) {
    mustache::data list(mustache::data::type::list);
    for (const SectionJson& one : json) list.push_back(data_of(one));
    return list;
  }
  if (json.is_boolean()) return mustache::data(json.get<bool>());
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    return text.empty() ? mustache::data(false) : mustache::data(text);
  }
  return json.is_null() ? mustache::data(false) : mustache::data(json.dump());
}

/// Lays the data out. All text in it is escaped by the template but the page's own style and script, drawings, and the
/// data of the case table, which are written for where they stand.
std::string laid_out(SectionJson content, const std::vector<std::string>& command) {
  content["command"] = printable_line(shell_line(command));
  content["version"] = ATTEST_VERSION;
  content["commit"] = build_commit();
  content["style"] = kPageStyle;
  content["script"] = kPageScript;
  mustache::mustache page{std::string(kPageTemplate)};
  if (!page.is_valid()) throw std::logic_error("page.mustache: " + page.error_message());
  return page.render(data_of(content));
}

}  // namespace

std::string results_page(const ResultFiles& results, const std::vector<std::string>& command) {
  PageContext page;
  const SectionJson headline = headline_json(results);
  SectionJson content = {{"title", "attest: " + headline["found"].get<std::string>()}, {"headline", headline}};
  const SectionJson failures = failure_groups(results.checks, page), matrix = verdict_matrix(results.checks);
  content["failures"] = {{"groups", failures}};
  content["has_failures"] = !failures.empty();
  content["matrix"] = matrix;
  content["has_matrix"] = !matrix["rows"].empty();
  content["runs"] = runs_side_by_side(results.checks);
  content["has_runs"] = !content["runs"].empty();
  const SectionJson asides = reasons_beside_passes(results.checks);
  content["asides"] = asides;
  content["has_asides"] = !asides.empty();
  const SectionJson distributions = error_distributions(results.checks, page);
  content["distributions"] = distributions;
  content["has_distributions"] = !distributions.empty();
  content["table_json"] = case_table_json(results.checks);
  content["comparisons"] = SectionJson::array();
  for (const CompareResults& one : results.comparisons) content["comparisons"].push_back(comparison_section(one, page));
  content["rankings"] = SectionJson::array();
  for (const JudgementFile& one : results.judgements) {
    for (SectionJson& section : ranking_sections(one)) content["rankings"].push_back(std::move(section));
  }
  content["has_rankings"] = !content["rankings"].empty();
  content["speeds"] = SectionJson::array();
  for (const BenchResults& one : results.benches) content["speeds"].push_back(speed_section(one, page));
  content["has_comparisons"] = !results.comparisons.empty();
  content["has_speeds"] = !results.benches.empty();
  content["has_table"] = content["has_matrix"];
  content["origins"] = origins(results);
  return laid_out(std::move(content), command);
}

}  // namespace attest

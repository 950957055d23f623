// The data of the case table, for the page's script.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

constexpr auto kReplaced = nlohmann::json::error_handler_t::replace;  ///< what is no UTF-8

/// Each text once.
class Strings {
 public:
  std::size_t of(const std::string& text) {
    const auto [place, fresh] = places_.try_emplace(text, list_.size());
    if (fresh) list_.push_back(printable_line(text));
    return place->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::string> list_;
};

/// JSON has no NaN or infinity: a script reads their names.
std::string number_json(double value, int digits) {
  if (std::isfinite(value)) return fmt::format("{:.{}g}", value, digits);
  return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
}

std::string number_json(const std::optional<double>& value, int digits) {
  return value ? number_json(*value, digits) : "null";
}

/// The repro line before and after the case, which is a string already.
std::string repro_json(const Verdict& v, Strings& strings) {
  const std::size_t at = v.repro.find(v.case_line);
  if (v.case_line.empty() || at == std::string::npos) return fmt::format("{},-1", strings.of(v.repro));
  return fmt::format("{},{}", strings.of(v.repro.substr(0, at)), strings.of(v.repro.substr(at + v.case_line.size())));
}

std::string worst_json(const Verdict& v, Strings& strings) {
  if (!v.worst) return "null";
  const WorstElement& w = *v.worst;
  std::string place = std::to_string(w.index[2]);
  if (row_word(w.output) == "key") place = "\"key " + place + "\"";
  return fmt::format("[{},{},{},{},{},{},{},{}]", strings.of(w.output), w.index[0], w.index[1], place, w.index[3],
                     number_json(w.got, 7), number_json(w.expected, 7), number_json(w.bound, 3));
}

/// The median and the largest error of o in units in the last place, or one null.
std::string ulps_json(const Verdict& v) {
  const auto ulps = ulps_of_output(v.accuracy);
  return ulps ? number_json(ulps->median, 2) + "," + number_json(ulps->largest, 2) : "null";
}

}  // namespace

std::string case_table_json(const std::vector<CheckResults>& checks) {
  Strings strings;
  std::string rows, runs;
  std::size_t first = 0;
  for (const CheckResults& check : checks) {
    const std::string name = nlohmann::json(printable_line(check.name)).dump(-1, ' ', true, kReplaced);
    runs +=
        fmt::format("{}[{},{}]", runs.empty() ? "" : ",", name, std::exchange(first, first + check.verdicts.size()));
    for (const Verdict& v : check.verdicts) {
      rows += fmt::format("{}[{},{},{},{},{},{},{},{},{},{},{},{},{},{}]", rows.empty() ? "" : ",\n",
                          strings.of(v.case_line), strings.of(v.suite), strings.of(v.backend),
                          strings.of(std::string(name_of(v.status))), number_json(v.error_over_bound, 4),
                          number_json(v.error_over_sigma, 3), strings.of(v.reason), strings.of(v.waiver),
                          worst_json(v, strings), v.rows_checked, v.rows, number_json(v.seconds.run, 3),
                          repro_json(v, strings), ulps_json(v));
    }
  }
  if (rows.empty()) return "";
  const std::string list = nlohmann::json(strings.list()).dump(-1, ' ', true, kReplaced);
  const std::string text = fmt::format("{{\"strings\":{},\n\"runs\":[{}],\n\"rows\":[{}]}}", list, runs, rows);
  // Nothing in it may end the script element that it stands in, or begin a comment there.
  std::string safe;
  safe.reserve(text.size());
  for (char c : text) {
    if (c == '<' || c == '>' || c == '&')
      safe += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      safe += c;
  }
  return safe;
}

}  // namespace attest

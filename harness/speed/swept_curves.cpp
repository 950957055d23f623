#include "harness/speed/swept_curves.h"

#include <cmath>

#include "harness/base/json_fields.h"
#include "harness/base/text.h"
#include "harness/cases/case.h"
#include "harness/speed/bench.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

SweptCurve curve_of(const Sweep& sweep, const std::string& line, const std::vector<BenchCase>& results) {
  SweptCurve curve{line, {}, {}};
  std::map<std::string, std::vector<Cost>> costs;
  for (const long value : sweep.values) {
    curve.cases.push_back(case_from_line(sweep.line_with(line, value)).label);
    for (const BenchCase& result : results) {
      if (result.case_line != curve.cases.back()) continue;
      for (const BenchLine& timed : result.lines) {
        if (timed.wrong.empty()) costs[timed.backend].push_back({static_cast<double>(value), timed.median()});
      }
    }
  }
  for (const auto& [backend, points] : costs) {
    if (points.size() < 2) continue;
    curve.growth[backend] = {fitted_exponent(points), fitted_exponent({points[points.size() - 2], points.back()}),
                             points.front().size, points.back().size};
  }
  return curve;
}

SweptCurve curve_from(const Json& json, const std::string& place, std::size_t values) {
  const JsonFields fields(json, place);
  SweptCurve curve{fields.text("line"), fields.texts("cases"), {}};
  if (curve.cases.size() != values) fields.fail("has not a case for each value");
  for (const auto& [backend, one] : fields.object("growth").items()) {
    const JsonFields growth(one, place + ": the growth of " + printable_line(backend));
    Growth& read = curve.growth[printable_line(backend)];
    read = {growth.number("exponent"), growth.number("last"), growth.number("from"), growth.number("to")};
    if (!(read.from > 0 && read.to > read.from)) growth.fail("has sizes that do not rise");
  }
  return curve;
}

}  // namespace

SweptCurves swept_curves(const Sweep& sweep, const std::vector<std::string>& lines,
                         const std::vector<BenchCase>& results) {
  SweptCurves swept{sweep.key, sweep.before, sweep.values, {}};
  for (const std::string& line : sweep.curves(lines)) swept.curves.push_back(curve_of(sweep, line, results));
  return swept;
}

Json to_json(const SweptCurves& sweep) {
  Json json = {{"key", sweep.key}, {"before", sweep.before}, {"values", sweep.values}, {"curves", Json::array()}};
  for (const SweptCurve& curve : sweep.curves) {
    Json growth = Json::object();
    for (const auto& [backend, g] : curve.growth)
      growth[backend] = {{"exponent", g.exponent}, {"last", g.last}, {"from", g.from}, {"to", g.to}};
    json["curves"].push_back({{"line", curve.line}, {"cases", curve.cases}, {"growth", growth}});
  }
  return json;
}

SweptCurves swept_curves_from_json(const Json& json, const std::string& name) {
  const JsonFields fields(json, name + ": the sweep");
  SweptCurves sweep{fields.text("key"), fields.text("before"), {}, {}};
  for (const std::size_t value : fields.counts("values")) {
    if (value <= (sweep.values.empty() ? 0u : static_cast<std::size_t>(sweep.values.back())))
      fields.fail("has values that do not rise from 1");
    sweep.values.push_back(static_cast<long>(value));
  }
  std::size_t number = 0;
  for (const Json& one : fields.list("curves"))
    sweep.curves.push_back(curve_from(one, fields.place_in("curves", ++number), sweep.values.size()));
  return sweep;
}

}  // namespace attest

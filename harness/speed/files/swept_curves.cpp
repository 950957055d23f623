#include "harness/speed/files/swept_curves.h"

#include "harness/base/json_fields.h"
#include "harness/base/text.h"

namespace attest {
namespace {

using OrderedJson = nlohmann::ordered_json;

SweptCurve curve_from(const OrderedJson& json, const std::string& place, std::size_t values) {
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

OrderedJson to_json(const SweptCurves& sweep) {
  OrderedJson json = {
      {"key", sweep.key}, {"before", sweep.before}, {"values", sweep.values}, {"curves", OrderedJson::array()}};
  for (const SweptCurve& curve : sweep.curves) {
    OrderedJson growth = OrderedJson::object();
    for (const auto& [backend, g] : curve.growth)
      growth[backend] = {{"exponent", g.exponent}, {"last", g.last}, {"from", g.from}, {"to", g.to}};
    json["curves"].push_back({{"line", curve.line}, {"cases", curve.cases}, {"growth", growth}});
  }
  return json;
}

SweptCurves swept_curves_from_json(const OrderedJson& json, const std::string& name) {
  const JsonFields fields(json, name + ": the sweep");
  SweptCurves sweep{fields.text("key"), fields.text("before"), {}, {}};
  for (const std::size_t value : fields.counts("values")) {
    if (value <= (sweep.values.empty() ? 0u : static_cast<std::size_t>(sweep.values.back())))
      fields.fail("has values that do not rise from 1");
    sweep.values.push_back(static_cast<long>(value));
  }
  std::size_t number = 0;
  for (const OrderedJson& one : fields.list("curves"))
    sweep.curves.push_back(curve_from(one, fields.place_in("curves", ++number), sweep.values.size()));
  return sweep;
}

}  // namespace attest

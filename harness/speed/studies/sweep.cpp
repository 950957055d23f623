#include "harness/speed/studies/sweep.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/speed/timing/bench.h"

namespace attest {
namespace {

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

}  // namespace

std::string Sweep::line_with(const std::string& line, long value) const {
  const std::string token = key + "=" + before + std::to_string(value);
  std::istringstream words(line);
  std::string result;
  bool replaced = false;
  for (std::string word; words >> word;) {
    const bool this_one = word.starts_with(key + "=");
    result += (result.empty() ? "" : " ") + (this_one ? token : word);
    replaced = replaced || this_one;
  }
  return replaced ? result : result + (result.empty() ? "" : " ") + token;
}

std::vector<std::string> Sweep::curves(const std::vector<std::string>& lines) const {
  std::set<std::string> seen;
  std::vector<std::string> list;
  for (const std::string& line : lines) {
    if (seen.insert(case_from_line(line_with(line, values.front())).label).second) list.push_back(line);
  }
  return list;
}

Sweep parse_sweep(const std::string& text) {
  static const std::regex form("([a-z.]+)=(.*[^0-9])?([0-9]{1,9})\\.\\.([0-9]{1,9})");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) {
    throw UserError(
        fmt::format("--sweep \"{}\": a key with its first and last value is wanted, as in seq=128..32768", text));
  }
  Sweep sweep{parts[1], parts[2], {}};
  const long first = std::stol(parts[3]), last = std::stol(parts[4]);
  if (first < 1 || last <= first) {
    throw UserError(fmt::format("--sweep \"{}\": the first value is at least 1, and the last one larger", text));
  }
  for (long value = first; value < last; value *= 2) sweep.values.push_back(value);
  sweep.values.push_back(last);
  return sweep;
}

double fitted_exponent(const std::vector<Cost>& costs) {
  std::vector<double> sizes, seconds;
  for (const Cost& cost : costs) {
    sizes.push_back(std::log(cost.size));
    seconds.push_back(std::log(cost.seconds));
  }
  const double x = mean(sizes), y = mean(seconds);
  double products = 0;
  for (std::size_t n = 0; n < costs.size(); ++n) products += (sizes[n] - x) * (seconds[n] - y);
  const double squares = squares_about_mean(sizes);
  return squares > 0 ? products / squares : 0;
}

SweptCurves swept_curves(const Sweep& sweep, const std::vector<std::string>& lines,
                         const std::vector<BenchCase>& results) {
  SweptCurves swept{sweep.key, sweep.before, sweep.values, {}};
  for (const std::string& line : sweep.curves(lines)) swept.curves.push_back(curve_of(sweep, line, results));
  return swept;
}

}  // namespace attest

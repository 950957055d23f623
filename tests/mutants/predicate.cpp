#include "tests/mutants/predicate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/cases/class_cases.h"

namespace attest::mutants {
namespace {

/// The whole text as a number.
std::optional<double> number_of(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return number;
}

/// Between `least` and `most`, each order of magnitude as often.
double log_uniform(double least, double most, Random& random) {
  const double share = static_cast<double>(random.below(1u << 20)) / (1u << 20);
  return least * std::pow(most / least, share);
}

Condition on_number(const Option& option, const Feature& feature, Random& random) {
  const std::int64_t first = feature.ranges.front().first, last = feature.ranges.back().first;
  const auto constant = static_cast<std::int64_t>(
      log_uniform(static_cast<double>(std::max<std::int64_t>(first, 1)), static_cast<double>(last), random));
  const bool least = random.below(2) == 0;
  Condition condition;
  condition.text = fmt::format("{} {} {}", feature.name, least ? ">=" : "<=", constant);
  condition.option = &option;
  condition.holds = [value = feature.value, constant, least](const Problem& p) {
    const std::optional<std::int64_t> n = value(p);
    return n && (least ? *n >= constant : *n <= constant);
  };
  const std::vector<std::size_t> classes = classes_of_feature(feature.name);
  for (std::size_t n = 0; n < classes.size(); ++n) {
    const Range& range = feature.ranges[n];
    if (least ? range.last >= constant : range.first <= constant) condition.ways.push_back(classes[n]);
  }
  return condition;
}

/// Numbers that are no sizes: scale, softcap, dropout, offsets, seeds.
std::optional<Condition> on_printed_number(const Option& option, const Feature& feature, Random& random) {
  const bool whole = option.kind != OptionKind::number;
  if (whole && option.key != "seed" && !option.key.ends_with(".offset")) return std::nullopt;
  const double constant = whole ? std::floor(log_uniform(1, 1000, random)) : log_uniform(0.01, 100, random);
  const bool least = random.below(2) == 0;
  Condition condition;
  condition.text = fmt::format("{} {} {:.3g}", option.key, least ? ">=" : "<=", constant);
  condition.option = &option;
  condition.holds = [print = option.print, constant, least](const Problem& p) {
    const std::optional<double> x = number_of(print(p));
    return x && (least ? *x >= constant : *x <= constant);
  };
  condition.ways = classes_of_feature(feature.name);
  return condition;
}

}  // namespace

bool Predicate::holds(const Problem& problem) const {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& c) { return c.holds(problem); });
}

std::string Predicate::text() const {
  std::string text;
  for (const Condition& c : conditions) text += (text.empty() ? "" : " and ") + c.text;
  return text;
}

Condition class_condition(std::size_t one) {
  const TableClass& c = classes_of_table()[one];
  return {c.name(), c.option, {one}, [&c](const Problem& p) { return c.feature->class_of(p) == c.which; }};
}

Condition random_condition(Random& random) {
  const Option& option = random.pick(options());
  const Feature& feature = random.pick(option.features);
  if (feature.value) return on_number(option, feature, random);
  if (auto number = on_printed_number(option, feature, random)) return *number;
  return class_condition(random.pick(classes_of_feature(feature.name)));
}

std::optional<Problem> case_where(const Predicate& predicate, Random& random) {
  for (int tries = 0; tries < 40; ++tries) {
    // Each condition in one of its ways, the nearer ones to what is usual as often as the others.
    std::vector<std::size_t> classes;
    for (const Condition& c : predicate.conditions) {
      if (c.ways.empty()) return std::nullopt;
      classes.push_back(random.pick(c.ways));
    }
    std::optional<Problem> p = case_in(classes, {2e7, 64.0 * (1 << 20)}, random, 8);
    if (p && predicate.holds(*p)) return p;
  }
  return std::nullopt;
}

}  // namespace attest::mutants

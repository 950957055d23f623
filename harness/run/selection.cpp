#include "harness/run/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

/// The library's parser of expressions, and its search with back-references, go a few frames deeper with each
/// character. Without back-references a text may have any length.
constexpr std::size_t kMaxExpression = 2000, kMaxTextOfBackReference = 4000;

constexpr std::size_t kLargestWhole = 1'000'000;  ///< of a share: nothing has more cases

using Fraction = std::pair<std::size_t, std::size_t>;

/// "i/n" with 1 <= i <= n.
std::optional<Fraction> fraction_in(const std::string& text) {
  Fraction read{0, 0};
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, read.first);
  if (error != std::errc() || slash == end || *slash != '/') return std::nullopt;
  const auto [stop, error_behind] = std::from_chars(slash + 1, end, read.second);
  if (error_behind != std::errc() || stop != end || read.first < 1 || read.first > read.second) return std::nullopt;
  return read;
}

std::string shown(const std::string& text) { return text.size() <= 80 ? text : text.substr(0, 77) + "..."; }

}  // namespace

Filter::Filter(const std::string& expression) : shown_(shown(expression)) {
  if (expression.empty()) return;
  if (expression.size() > kMaxExpression) {
    throw UserError(fmt::format("--filter \"{}\" has {} characters, {} are the limit; make it shorter", shown_,
                                expression.size(), kMaxExpression));
  }
  try {
    expression_.emplace(expression, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw UserError("--filter \"" + shown_ + "\" is no ECMAScript regular expression");
  }
  try {
    // One pass over the text, wherever the match begins: a search of its own from each place takes minutes on long
    // texts.
    expression_ =
        std::regex("[\\s\\S]*(?:" + expression + ")", std::regex::ECMAScript | std::regex_constants::__polynomial);
    one_pass_ = true;
  } catch (const std::regex_error&) {  // it has back-references, or many states
  }
}

bool Filter::keeps(const std::string& text) const {
  if (!expression_) return true;
  if (one_pass_) return std::regex_search(text, *expression_, std::regex_constants::match_continuous);
  if (text.size() > kMaxTextOfBackReference) {
    throw UserError(
        fmt::format("--filter \"{}\": back-references are for lines of up to {} characters, and \"{}\" has {}; "
                    "filter without them",
                    shown_, kMaxTextOfBackReference, shown(text), text.size()));
  }
  return std::regex_search(text, *expression_);
}

Shard::Shard(const std::string& text) {
  if (text.empty()) return;
  const std::optional<Fraction> read = fraction_in(text);
  if (!read) throw UserError("--shard \"" + text + "\": i/n with 1 <= i <= n is wanted, as 1/4");
  std::tie(index_, count_) = *read;
}

std::vector<bool> Shard::cases_of(const std::vector<double>& costs) const {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  // Parts beyond the number of cases stay empty, and take no memory.
  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> parts;
  for (std::size_t part = 1; part <= std::min(count_, costs.size()); ++part) parts.emplace(0, part);
  std::vector<bool> own(costs.size());
  for (const std::size_t number : order) {
    const auto [load, part] = parts.top();
    parts.pop();
    own[number] = part == index_;
    parts.emplace(load + costs[number], part);
  }
  return own;
}

Share::Share(const std::string& text) {
  if (text.empty()) return;
  const std::optional<Fraction> read = fraction_in(text);
  if (!read || read->second > kLargestWhole) {
    throw UserError(fmt::format("--share \"{}\": n/m with 1 <= n <= m <= {} is wanted, as 1/8", text, kLargestWhole));
  }
  std::tie(part_, whole_) = *read;
}

std::vector<bool> Share::cases_of(const std::vector<std::string>& lines, std::uint64_t seed) const {
  if (is_all()) return std::vector<bool>(lines.size(), true);
  std::vector<std::pair<std::string, std::size_t>> order;
  order.reserve(lines.size());
  for (const std::string& line : lines) {
    Fingerprint drawn;
    drawn.add(std::to_string(seed) + ' ' + line);
    order.emplace_back(drawn.text(), order.size());
  }
  std::sort(order.begin(), order.end());
  order.resize((part_ * lines.size() + whole_ - 1) / whole_);
  std::vector<bool> own(lines.size());
  for (const auto& [drawn, number] : order) own[number] = true;
  return own;
}

}  // namespace attest

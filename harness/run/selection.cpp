#include "harness/run/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "harness/base/user_error.h"

namespace attest {
namespace {

/// The library's parser of expressions, and its search with back-references, go a few frames deeper with each
/// character. Without back-references a text may have any length.
constexpr std::size_t kMaxExpression = 2000, kMaxTextOfBackReference = 4000;

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
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, index_);
  bool good = error == std::errc() && slash != end && *slash == '/';
  if (good) {
    const auto [stop, error2] = std::from_chars(slash + 1, end, count_);
    good = error2 == std::errc() && stop == end && count_ >= 1 && index_ >= 1 && index_ <= count_;
  }
  if (!good) throw UserError("--shard \"" + text + "\": i/n with 1 <= i <= n is wanted, as 1/4");
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

}  // namespace attest

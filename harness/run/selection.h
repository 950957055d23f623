// Which of the cases a run takes: its filter and its shard.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <regex>
#include <string>

#include "harness/base/user_error.h"

namespace attest {

/// ECMAScript expression searched in "backend case-line"; empty keeps everything.
class Filter {
 public:
  explicit Filter(const std::string& expression) {
    if (expression.empty()) return;
    try {
      expression_.emplace(expression, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error&) {
      throw UserError("--filter \"" + expression + "\" is no ECMAScript regular expression");
    }
  }
  bool keeps(const std::string& text) const { return !expression_ || std::regex_search(text, *expression_); }

 private:
  std::optional<std::regex> expression_;
};

/// "i/n", counted from 1: every n-th case, beginning with the i-th. Empty is 1/1.
class Shard {
 public:
  explicit Shard(const std::string& text) {
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
  bool holds(std::size_t number) const { return number % count_ == index_ - 1; }
  std::size_t count(std::size_t cases) const { return (cases + count_ - index_) / count_; }

 private:
  std::size_t index_ = 1, count_ = 1;
};

}  // namespace attest

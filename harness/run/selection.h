// Which of the cases a run takes: its filter and its shard.
#pragma once

#include <cstddef>
#include <optional>
#include <regex>
#include <string>

namespace attest {

/// ECMAScript expression searched in "backend case-line"; empty keeps everything.
class Filter {
 public:
  /// Throws UserError for what is no expression, or a very long one.
  explicit Filter(const std::string& expression);
  /// In time that grows with the text and no faster, unless the expression has back-references: these are for lines of
  /// ordinary length, and throw UserError at longer ones.
  bool keeps(const std::string& text) const;

 private:
  std::optional<std::regex> expression_;
  std::string shown_;      ///< in messages
  bool one_pass_ = false;  ///< the expression matches from the beginning of a text that it is found in
};

/// "i/n", counted from 1: every n-th case, beginning with the i-th. Empty is 1/1.
class Shard {
 public:
  /// Throws UserError.
  explicit Shard(const std::string& text);
  bool holds(std::size_t number) const { return number % count_ == index_ - 1; }
  std::size_t count(std::size_t cases) const { return (cases + count_ - index_) / count_; }

 private:
  std::size_t index_ = 1, count_ = 1;
};

}  // namespace attest

// Which of the cases a run takes: its share of a suite, its filter and its shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

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

/// "i/n", counted from 1: the i-th of n parts that cost about the same. Empty is 1/1.
class Shard {
 public:
  /// Throws UserError.
  explicit Shard(const std::string& text);
  /// Which of the cases are its own, given what each costs: the costliest goes first, each to the part that has least
  /// so far. A part may be empty where there are more parts than cases. The same on every machine where the costs are.
  std::vector<bool> cases_of(const std::vector<double>& costs) const;
  /// The part that has the costliest case, and does what is done once for all parts.
  bool is_first() const { return index_ == 1; }

 private:
  std::size_t index_ = 1, count_ = 1;
};

/// "n/m": so much of a list of cases, drawn by a seed. Empty is all of it.
class Share {
 public:
  /// Throws UserError.
  explicit Share(const std::string& text);
  /// Which of the cases are in it: n * size / m of them, rounded up, so that some are wherever there is a case. A
  /// function of the lines and the seed, the same on every machine; another seed gives another share.
  std::vector<bool> cases_of(const std::vector<std::string>& lines, std::uint64_t seed) const;
  bool is_all() const { return part_ == whole_; }

 private:
  std::size_t part_ = 1, whole_ = 1;
};

}  // namespace attest

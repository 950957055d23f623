// What an implementation can do, as its results show it: options by types.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Counts verdicts of one backend by the options that their cases use and by their type.
class SupportMatrix {
 public:
  /// A case with several options counts for each of them. A file of tensors, whose options no verdict tells, is left
  /// out. Throws UserError for a case line of a newer attest.
  void add(const Verdict& verdict);
  /// Verdicts on files of tensors.
  std::size_t left_out() const { return left_out_; }
  std::size_t verdicts() const { return verdicts_; }
  /// A row for each option in the order of the case language, a column for each type that was met. A cell says "right
  /// 12", "wrong 2 of 14", "refused 3" or "unproven 1", and of several what was right and what was refused.
  Table table() const;

 private:
  struct Counted {
    std::size_t right = 0, wrong = 0, refused = 0, unproven = 0;
    std::string text() const;
  };
  std::map<std::string, std::map<std::string, Counted>> cells_;  ///< by option and type
  std::vector<std::string> rows_;                                ///< options, as they came
  std::size_t verdicts_ = 0, left_out_ = 0;
};

/// Words for the options of a call: "causal", "mask=bool", "grouped heads", ...; "no option" where it has none. Data
/// (fills, seeds) and the type are none.
std::vector<std::string> options_used(const std::string& case_line);

}  // namespace attest

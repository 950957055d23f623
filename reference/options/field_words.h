// What papers, libraries and models call the options of a case, and what they have that no case can ask for.
#pragma once

#include <span>
#include <string_view>

namespace attest {

/// Words that mean one thing, and how it is said here.
struct FieldWord {
  std::string_view words;  ///< in lower case with _, a space between two: "gqa num_kv_heads"
  std::string_view here;   ///< tokens of a case line: "heads=8/2"; empty: there is no such thing
  std::string_view about;  ///< a few words more
};

/// Every word stands in one row, and none is a key. Printed by `attest list words`, and in harness/CASES.md.
std::span<const FieldWord> field_words();

/// The row of a word, whatever its case and with - for _; nullptr for one that no row has.
const FieldWord* find_field_word(std::string_view word);

}  // namespace attest

// Other things that a backend could say of its arithmetic, for whom what it says doesn't hold, and how it would say
// them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// A member of Arithmetic with its value, as JSON and Python's dict name both: "stored_weights", "bf16".
struct StatedField {
  std::string_view key;
  std::string value;  ///< of a flag "true" or "false"

  bool operator==(const StatedField&) const = default;
};

/// Every member of an arithmetic in the order of reference/arithmetic/arithmetic.h.
std::vector<StatedField> stated_fields(const Arithmetic& arithmetic);

/// One statement, said otherwise.
struct Restatement {
  std::string_view probe;                 ///< the member by whose name the probe of it goes
  std::vector<StatedField> fields;        ///< what would be said: one member, or two that belong together
  std::function<void(Arithmetic&)> make;  ///< says it
  bool of_weights = false;                ///< of how P comes about and is stored
  bool measured = false;                  ///< a number that a probe measures, here in steps
};

/// Every statement with other values than those that are made. Numbers that a probe measures come in steps of four.
std::vector<Restatement> restatements(const Arithmetic& stated);

/// Whether no kernel could have this arithmetic: statements that exclude each other.
bool fault_in(const Arithmetic& arithmetic);

/// In which words a backend states its arithmetic.
enum class StatementLanguage { cpp, c, python };
/// Of a backend that comes from there (harness/base/backend_source.h); from nowhere: it is in the program.
StatementLanguage language_of(const std::string& source);

/// "stored_weights=bf16, normalised_before_storage": a flag that is true stands by its name.
std::string statement_text(const std::vector<StatedField>& fields);
/// The same as it is written: `arithmetic={"stored_weights": "bf16", "normalised_before_storage": True}`,
/// `arithmetic->stored_weights = ATTEST_BF16; arithmetic->normalised_before_storage = 1;` or the same in C++.
std::string statement_code(const std::vector<StatedField>& fields, StatementLanguage language);

}  // namespace attest

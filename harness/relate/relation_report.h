// Verdicts on relations as a table, a list of failures and JSON.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/table.h"
#include "harness/relate/related_case.h"

namespace attest {

/// The verdicts of one relation on one backend.
struct RelationCount {
  std::size_t bits = 0, bound = 0, fail = 0, refused = 0;
  double largest = 0;     ///< of all differences, as a fraction of what is allowed
  bool promised = false;  ///< the backend states that bits are kept

  std::size_t ran() const { return bits + bound + fail; }
  /// "40 bits", "38 bits, 2 bound (0.21)", "1 FAIL, 39 bits", and with a promise "40 bits, promised"; "refused", and ""
  /// where the relation never applied.
  std::string text() const;
  /// "39 with the same bits, 2 within bounds, 1 failed, 0 refused".
  std::string summary() const;
};

class RelationTally {
 public:
  explicit RelationTally(std::vector<std::string> backends) : backends_(std::move(backends)) {}

  void add(const RelationVerdict& verdict);
  /// A row for each relation that applied, a column for each backend.
  std::string table(TableFormat format) const;
  const RelationCount& all() const { return all_; }

 private:
  std::vector<std::string> backends_;
  std::map<std::pair<std::string, std::string>, RelationCount> counts_;  ///< by relation and backend
  RelationCount all_;
};

/// A failure in some lines: what differs, the other call, and how to repeat it.
std::string failure_text(const RelationVerdict& verdict);

/// A line of the file of verdicts, and its last one.
nlohmann::ordered_json relation_to_json(const RelationVerdict& verdict);
nlohmann::ordered_json summary_to_json(const RelationCount& all, bool ended_early);

}  // namespace attest

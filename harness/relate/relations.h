// The table of relations: which other calls must give the same numbers as a call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/relate/derived_call.h"

namespace attest {

/// How the other results come about.
enum class RelationKind : std::uint8_t {
  calls,    ///< each of the other calls by itself
  parts,    ///< the results of all other calls are merged by their logsumexp
  runs,     ///< the same plan again, and a new one
  threads,  ///< the backend made for other numbers of threads
};

struct Relation {
  std::string_view name;
  std::string_view about;    ///< what must be equal, a sentence
  std::string_view applies;  ///< to which calls
  RelationKind kind = RelationKind::calls;
  bool keeps_sums =
      true;  ///< whether a backend may add the same numbers in the same order: only then bits are promised
  /// The other calls; none where the relation doesn't apply. Empty for `runs` and `threads`, which always apply.
  std::vector<Arrangement> (*derive)(const Problem& whole, const Inputs& inputs) = nullptr;
};

/// In the order of all tables and lists.
std::span<const Relation> relations();
/// Throws UserError for an unknown name, with the nearest one.
const Relation& relation_named(std::string_view name);

}  // namespace attest

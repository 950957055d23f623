// One case line and the relations between its results and those of other calls, on one backend after another. No
// reference is computed while results agree in bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/relate/differences.h"
#include "harness/relate/relations.h"
#include "reference/base/names.h"

namespace attest {

/// `bound`: other bits, within the sum of both bounds.
enum class RelationStatus : std::uint8_t { bits, bound, fail, refused };

template <>
inline constexpr auto kNames<RelationStatus> = name_table("bits", "bound", "fail", "refused");

struct RelationVerdict {
  std::string suite, case_line, backend;
  std::string_view relation;
  RelationStatus status = RelationStatus::refused;
  bool promised = false;   ///< the backend states that bits are kept: others are a failure
  std::string reason;      ///< of a failure and a refusal
  std::string other_call;  ///< the other call that the element or the reason is of, as a case line
  std::string about;       ///< how that call differs, where its line doesn't tell
  int calls = 0;           ///< other calls, or runs, that were compared
  Differences found;       ///< of all of them
  std::string repro;
};

inline bool is_failure(const RelationVerdict& v) { return v.status == RelationStatus::fail; }

class RelatedCase {
 public:
  /// `source` outlives this. Throws UserError when the machine has too little memory.
  RelatedCase(const Case& source, int threads);
  ~RelatedCase();

  bool applies(const Relation& relation);
  /// Of a relation that applies. `others` are the same backend made for other numbers of threads. Throws nothing that
  /// a backend throws, but what ends a run.
  RelationVerdict judge(const Relation& relation, Backend& backend, std::span<Backend* const> others);

 private:
  struct OtherCall;
  struct Run;

  const std::vector<std::unique_ptr<OtherCall>>& other_calls(const Relation& relation);
  /// The backend's result for the whole case, computed once. Throws what the backend throws.
  const GuardedOutputs& result_of(Backend& backend);
  void compare_calls(const Relation& relation, Backend& backend, RelationVerdict& verdict);
  void compare_runs(Backend& backend, std::span<Backend* const> others, RelationVerdict& verdict);
  MakeBounds bounds_of_whole(const Backend& backend);

  const Case& source_;
  const int threads_;
  CaseInputs made_;
  Inputs views_;
  std::map<std::string_view, std::vector<std::unique_ptr<OtherCall>>> calls_;
  std::map<const Backend*, std::unique_ptr<GuardedOutputs>> results_;
  std::map<const Backend*, std::unique_ptr<BoundedResults>> bounds_;
};

}  // namespace attest

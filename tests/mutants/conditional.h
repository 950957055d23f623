// Mistakes that are made only where a predicate over the call holds: what a kernel does that goes wrong beyond a tile,
// a limit or in a rare combination.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "tests/mutants/predicate.h"

namespace attest::mutants {

/// The mistakes of tests/faulty/tampered.h that `example` is made to make, by name, ready to run.
class Mistakes {
 public:
  Mistakes();
  /// Those that may matter where these options are set: the options themselves ignored, and what is wrong everywhere.
  std::vector<std::string> candidates(const Predicate& predicate) const;
  /// Those of `asked` that are caught on this case, made always.
  std::set<std::string> caught(const std::set<std::string>& asked, const Case& source);
  Backend& backend(const std::string& mistake) { return *backends_.at(mistake); }

 private:
  std::map<std::string, std::unique_ptr<Backend>> backends_;
};

struct ConditionalMutant {
  Predicate predicate;
  std::string mistake;
  std::string witness;  ///< a case line that catches it: it is no equivalent one
};

/// A mutant for the predicate; nullopt when no case was found on which any of its mistakes shows.
std::optional<ConditionalMutant> make_mutant(const Predicate& predicate, Mistakes& mistakes, Random& random);

struct MutantSet {
  std::string name;
  std::vector<ConditionalMutant> mutants;
  std::size_t without_witness = 0;
};

struct MutantKind {
  bool pairs = false;             ///< two conditions, and not one
  bool gradients = false;         ///< only where the call asks for gradients
  std::set<std::string> options;  ///< keys: the first condition, or one of classes, asks for one of them; none: for any
  /// Throws UserError for a key that the table doesn't have.
  void require_options() const;
  bool is_about(const Condition& condition) const;
  /// Adds what all mutants of the kind have in common.
  void restrict(Predicate& predicate, Random& random) const;
};

/// From the table's classes: singles, or `count` pairs of those that can be met, drawn by the seed; 0: all.
MutantSet class_mutants(const MutantKind& kind, std::size_t count, std::uint64_t seed, Mistakes& mistakes);
/// `count` random ones.
MutantSet random_mutants(const MutantKind& kind, std::size_t count, std::uint64_t seed, Mistakes& mistakes);

/// Judges mutants on cases one after another. A mutant is caught on a case where its predicate holds and its mistake is
/// caught: a mistake is run at most once on each case, for all mutants that make it.
class Judge {
 public:
  Judge(Mistakes& mistakes, std::vector<const ConditionalMutant*> mutants);
  void look_at(const Case& source);
  const std::vector<const ConditionalMutant*>& alive() const { return alive_; }

 private:
  Mistakes& mistakes_;
  std::vector<const ConditionalMutant*> alive_;
};

}  // namespace attest::mutants

#include "tests/mutants/conditional.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "harness/base/user_error.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "tests/faulty/tampered.h"

namespace attest::mutants {
namespace {

constexpr int kThreads = 1;  // of the reference

/// Wrong whatever is set.
constexpr std::array<std::string_view, 5> kEverywhere = {"last_key_dropped", "last_row_left_out", "last_feature_zero",
                                                         "rounded_to_bf16", "row_of_the_run_before"};

/// An option, and the mistakes that ignore it or are off by one there.
constexpr std::array<std::pair<std::string_view, std::string_view>, 47> kOfOption = {{
    {"causal", "causal_dropped"},
    {"align", "corner_swapped"},
    {"window", "window_dropped"},
    {"window", "window_a_key_short"},
    {"mask", "mask_dropped"},
    {"scale", "given_scale_dropped"},
    {"softcap", "softcap_dropped"},
    {"alibi", "alibi_dropped"},
    {"sinks", "sinks_dropped"},
    {"lengths", "key_lengths_dropped"},
    {"lengths", "query_lengths_dropped"},
    {"segments", "segments_dropped"},
    {"prefix", "prefix_dropped"},
    {"prefix", "prefix_off_by_one"},
    {"blocks", "blocks_dropped"},
    {"blocks", "blocks_of_head_0"},
    {"dropout", "dropout_dropped"},
    {"dropout", "dropout_of_another_seed"},
    {"past", "past_has_no_offset"},
    {"past", "present_without_past"},
    {"paged", "pages_in_order"},
    {"state", "state_dropped"},
    {"decay", "decay_dropped"},
    {"beta", "delta_dropped"},
    {"pass", "backward_without_delta"},
    {"pass", "backward_mean_of_group"},
    {"out", "backward_without_dsinks"},
    {"dlse", "backward_drops_dlse"},
    {"causal", "backward_always_causal"},
    {"dropout", "backward_other_dropout"},
    {"blocks", "backward_blocks"},
    {"layout", "packed_heads_share_keys"},
    {"rope", "rope_of_other_pairs"},
    {"rope", "rope_turned_back"},
    {"rope.positions", "rope_positions_in_bf16"},
    {"rope.cache", "rope_twice"},
    {"norm", "norm_without_mean"},
    {"norm", "norm_weights_plus_1"},
    {"scales", "scale_of_first"},
    {"softcap", "cap_on_other_side"},
    {"latent", "latent_values_behind"},
    {"latent.parts", "latent_rope_dropped"},
    {"select", "select_dropped"},
    {"select", "select_last_entry_dropped"},
    {"parts", "merge_drops_last_part"},
    {"parts", "merge_of_equal_weights"},
    {"l2norm", "l2norm_by_mean"},
}};

template <class T>
void shuffle(std::vector<T>& list, Random& random) {
  for (std::size_t n = list.size(); n > 1; --n) std::swap(list[n - 1], list[random.below(n)]);
}

MutantSet make_set(std::string name, const std::vector<Predicate>& predicates, Mistakes& mistakes, Random& random) {
  MutantSet set{std::move(name), {}, 0};
  for (const Predicate& predicate : predicates) {
    if (auto mutant = make_mutant(predicate, mistakes, random)) {
      set.mutants.push_back(std::move(*mutant));
    } else {
      ++set.without_witness;
    }
  }
  return set;
}

}  // namespace

Mistakes::Mistakes() {
  for (const BackendEntry& entry : faulty::tampered_backends())
    backends_[std::string(entry.name)] = entry.make({1, ""});
}

std::vector<std::string> Mistakes::candidates(const Predicate& predicate) const {
  std::vector<std::string> names;
  for (const Condition& c : predicate.conditions) {
    for (const auto& [option, mistake] : kOfOption) {
      if (c.option->key == option) names.emplace_back(mistake);
    }
  }
  names.insert(names.end(), kEverywhere.begin(), kEverywhere.end());
  return names;
}

std::set<std::string> Mistakes::caught(const std::set<std::string>& asked, const Case& source) {
  std::vector<Backend*> wrong;
  for (const std::string& mistake : asked) wrong.push_back(&backend(mistake));
  std::set<std::string> shown;
  try {
    const PreparedCase prepared(source, wrong, kThreads);
    for (const std::string& mistake : asked) {
      if (is_failure(prepared.check(backend(mistake)))) shown.insert(mistake);
    }
  } catch (const UserError&) {
    return {};  // data that the type can't hold
  }
  return shown;
}

std::optional<ConditionalMutant> make_mutant(const Predicate& predicate, Mistakes& mistakes, Random& random) {
  std::vector<std::string> candidates = mistakes.candidates(predicate);
  shuffle(candidates, random);
  // The one that shows whenever a row exists at all comes last.
  candidates.erase(std::find(candidates.begin(), candidates.end(), "last_row_left_out"));
  candidates.emplace_back("last_row_left_out");
  std::vector<Case> cases;
  for (int n = 0; n < 3; ++n) {
    if (const auto p = case_where(predicate, random)) cases.push_back(case_from_line(print_case(*p)));
  }
  for (const std::string& mistake : candidates) {
    for (const Case& one : cases) {
      if (!mistakes.caught({mistake}, one).empty()) return ConditionalMutant{predicate, mistake, one.label};
    }
  }
  return std::nullopt;
}

void MutantKind::restrict(Predicate& predicate, Random& random) const {
  if (!gradients) return;
  std::vector<std::size_t> passes = classes_of_feature("pass");
  std::erase_if(passes, [](std::size_t one) { return classes_of_table()[one].name().ends_with("forward"); });
  predicate.conditions.push_back(class_condition(random.pick(passes)));
}

void MutantKind::require_options() const {
  for (const std::string& key : options) {
    if (!find_option(key))
      throw UserError("--options: there is no option \"" + key + "\"; attest list options names them");
  }
}

bool MutantKind::is_about(const Condition& condition) const {
  return options.empty() || options.contains(condition.option->key);
}

MutantSet class_mutants(const MutantKind& kind, std::size_t count, std::uint64_t seed, Mistakes& mistakes) {
  kind.require_options();
  Random random(seed);
  std::vector<Predicate> predicates;
  if (kind.pairs) {
    for (const auto& [a, b] : all_pairs()) {
      if (!why_impossible(a, b)) predicates.push_back({{class_condition(a), class_condition(b)}});
    }
  } else {
    for (std::size_t n = 0; n < classes_of_table().size(); ++n) {
      if (!why_impossible(n, n)) predicates.push_back({{class_condition(n)}});
    }
  }
  std::erase_if(predicates, [&](const Predicate& predicate) {
    return std::ranges::none_of(predicate.conditions, [&](const Condition& one) { return kind.is_about(one); });
  });
  if (count > 0 && count < predicates.size()) {
    shuffle(predicates, random);
    predicates.resize(count);
  }
  for (Predicate& predicate : predicates) kind.restrict(predicate, random);
  return make_set(kind.pairs ? "classes, pairs" : "classes, singles", predicates, mistakes, random);
}

MutantSet random_mutants(const MutantKind& kind, std::size_t count, std::uint64_t seed, Mistakes& mistakes) {
  Random random(seed);
  MutantSet set{kind.pairs ? "random, pairs" : "random, singles", {}, 0};
  while (set.mutants.size() < count) {
    Predicate predicate{{random_condition(random)}};
    if (!kind.is_about(predicate.conditions[0])) continue;
    if (kind.pairs) {
      predicate.conditions.push_back(random_condition(random));
      if (predicate.conditions[0].option == predicate.conditions[1].option) continue;
    }
    kind.restrict(predicate, random);
    if (auto mutant = make_mutant(predicate, mistakes, random)) {
      set.mutants.push_back(std::move(*mutant));
    } else {
      ++set.without_witness;
    }
  }
  return set;
}

Judge::Judge(Mistakes& mistakes, std::vector<const ConditionalMutant*> mutants)
    : mistakes_(mistakes), alive_(std::move(mutants)) {}

void Judge::look_at(const Case& source) {
  std::vector<const ConditionalMutant*> here;
  std::set<std::string> made;
  for (const ConditionalMutant* mutant : alive_) {
    if (!mutant->predicate.holds(source.problem)) continue;
    here.push_back(mutant);
    made.insert(mutant->mistake);
  }
  if (here.empty()) return;
  const std::set<std::string> shown = mistakes_.caught(made, source);
  std::erase_if(alive_, [&](const ConditionalMutant* mutant) {
    return shown.contains(mutant->mistake) && std::find(here.begin(), here.end(), mutant) != here.end();
  });
}

}  // namespace attest::mutants

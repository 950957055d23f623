#include "harness/relate/promise.h"

#include <algorithm>
#include <vector>

#include "harness/base/text.h"
#include "harness/relate/related_case.h"
#include "harness/verdict/stated_conventions.h"

namespace attest {
namespace {

/// Every relation applies to one of them.
constexpr const char* kProbes[] = {
    "batch=3 heads=4/2 seq=17x40 dim=16 causal align=bottom-right out=o,lse",
    "batch=2 heads=2 seq=3x50 dim=16 lengths=50,18 paged=16",
    "dtype=f16 batch=2 heads=2 seq=33 dim=32 lengths=33,20",
};

bool is_kept(Backend& backend, const Relation& relation, std::vector<std::unique_ptr<RelatedCase>>& cases) {
  return std::ranges::none_of(
      cases, [&](auto& one) { return one->applies(relation) && is_failure(one->judge(relation, backend, {})); });
}

}  // namespace

bool promises_bits(const Conventions& stated, std::string_view relation) {
  return std::ranges::count(listed_words(stated.same_bits), relation) > 0;
}

std::string kept_promise(Backend& backend) {
  const std::string stated = backend.conventions().same_bits;
  if (stated == Conventions().same_bits) return stated;
  std::vector<Case> sources;
  for (const char* line : kProbes) sources.push_back(case_from_line(line));
  std::vector<std::unique_ptr<RelatedCase>> cases;
  for (const Case& source : sources) cases.push_back(std::make_unique<RelatedCase>(source, 1));
  std::vector<std::string> kept;
  for (const std::string& word : listed_words(stated)) {
    const auto relation = std::ranges::find(relations(), word, &Relation::name);
    if (relation != relations().end() && is_kept(backend, *relation, cases)) kept.push_back(word);
  }
  return kept.empty() ? Conventions().same_bits : join_texts(kept, ", ");
}

}  // namespace attest

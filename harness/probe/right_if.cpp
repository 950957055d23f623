#include "harness/probe/right_if.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/base/text.h"
#include "harness/comparison/compare.h"
#include "harness/probe/probe.h"
#include "harness/probe/restated.h"
#include "harness/verdict/judgement.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr double kMostKeptBytes = 256 << 20;  ///< of results that are kept
constexpr std::size_t kMostMembers = 3;       ///< of a statement
constexpr std::size_t kWorstRows = 3;         ///< by which most statements fall
constexpr std::size_t kTogether = 8;          ///< statements for which the bounds of a whole case are derived at once

/// One to three statements at once.
struct Candidate {
  std::vector<const Restatement*> changes;
  double tightness = 0;  ///< the largest error over its bound: of two statements the one that allows less

  std::size_t members() const {
    std::size_t count = 0;
    for (const Restatement* one : changes) count += one->fields.size();
    return count;
  }
  Arithmetic made_of(Arithmetic a) const {
    for (const Restatement* one : changes) one->make(a);
    return a;
  }
};

using Clock = std::chrono::steady_clock;

/// Statements of so many members, those of P in threes.
std::vector<Candidate> candidates_of(const Arithmetic& stated, const std::vector<Restatement>& list,
                                     std::size_t members) {
  std::vector<Candidate> found;
  const auto consider = [&](std::vector<const Restatement*> changes) {
    Candidate one{std::move(changes)};
    if (one.members() == members && !fault_in(one.made_of(stated))) found.push_back(std::move(one));
  };
  for (std::size_t n = 0; n < list.size(); ++n) {
    consider({&list[n]});
    for (std::size_t m = n + 1; members > 1 && m < list.size(); ++m) {
      if (list[m].probe == list[n].probe || (list[n].measured && list[m].measured)) continue;
      consider({&list[n], &list[m]});
      if (!list[n].of_weights || !list[m].of_weights) continue;
      for (std::size_t k = m + 1; members > 2 && k < list.size(); ++k) {
        if (list[k].probe != list[n].probe && list[k].probe != list[m].probe) consider({&list[n], &list[m], &list[k]});
      }
    }
  }
  return found;
}

CaseInputs inputs_of(const Case& source) { return source.inputs ? *source.inputs : make_inputs(source.problem); }

double cost_of(const WrongResult& result) { return dense_multiply_adds(result.source->problem); }

/// The rows that are furthest off under what is stated, the worst first.
std::vector<RowIndex> worst_rows(const WrongResult& result, const Inputs& inputs, int threads) {
  const Problem& p = result.source->problem;
  const Expectation e = expect(p, inputs, {{result.stated, {}}}, threads);
  std::map<RowIndex, double> ratios;
  each_result(p, e, e.bounds.front(), *result.outputs,
              [&](const TensorRow& output, const Index4& at, double got, double expected, double bound) {
                if (index_space(output.id) != IndexSpace::query_rows) return;
                double& ratio = ratios[{at[0], at[1], at[2]}];
                ratio = std::max(ratio, error_in_bounds(got, expected, bound));
              });
  std::vector<RowIndex> rows;
  for (const auto& [row, ratio] : ratios) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return ratios[a] > ratios[b]; });
  rows.resize(std::min(rows.size(), kWorstRows));
  return rows;
}

/// Leaves the candidates under which o and lse of this row are right, and how tight each is there.
void keep_right_in_row(const WrongResult& result, const Inputs& inputs, const RowIndex& at,
                       std::vector<Candidate>& candidates) {
  const Call& p = result.source->problem.call;
  std::vector<Producer> producers = {{reference_arithmetic(), DType::f64}};
  for (const Candidate& one : candidates) producers.push_back({one.made_of(result.stated), {}});
  const auto head = operator_of(p).head(p, inputs, at.b, at.h, producers);
  ResultValues row, own, bound;
  head->attend(at.i, row);
  head->bound(0, own);
  std::size_t kept = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    head->bound(n + 1, bound);
    const double ratio = error_in_row(p, *result.outputs, at, row, own, bound);
    if (!(ratio <= 1)) continue;
    candidates[n].tightness = std::max(candidates[n].tightness, ratio);
    if (kept != n) candidates[kept] = std::move(candidates[n]);
    ++kept;
  }
  candidates.resize(kept);
}

/// Leaves the candidates under which the whole result is right, by both tiers, and proves something.
void keep_right(const WrongResult& result, const Inputs& inputs, int threads, std::vector<Candidate>& candidates) {
  const Problem& p = result.source->problem;
  std::vector<Producer> producers;
  for (const Candidate& one : candidates) producers.push_back({one.made_of(result.stated), {}});
  const Expectation e = expect(p, inputs, producers, threads);
  std::size_t n = 0;
  std::erase_if(candidates, [&](const Candidate&) {
    const std::size_t producer = e.index_of(producers[n++]);
    const Comparison comparison = compare_outputs(p, e, e.bounds[producer], *result.outputs);
    if (comparison.failed() || comparison.inconclusive()) return true;
    const auto deviation = largest_deviation(p, e, producer, *result.outputs);
    return deviation && deviation->ratio > kSuspectDeviations;
  });
}

/// The failing cases in one storage type.
class Search {
 public:
  Search(std::vector<const WrongResult*> results, Backend& backend, int threads, Clock::time_point end)
      : results_(std::move(results)), backend_(backend), threads_(threads), end_(end) {
    std::stable_sort(results_.begin(), results_.end(),
                     [](const auto* a, const auto* b) { return cost_of(*a) < cost_of(*b); });
    restatements_ = restatements(results_.front()->stated);
    dtype_ = results_.front()->source->problem.call.dtype;
  }

  std::vector<StatedField> fields() {
    const CaseInputs data = inputs_of(*results_.front()->source);
    const Inputs inputs = data.views();
    const std::vector<RowIndex> rows = worst_rows(*results_.front(), inputs, threads_);
    if (rows.empty() || !widest_is_right(inputs, rows)) return {};
    for (std::size_t members = 1; members <= kMostMembers && in_time(); ++members) {
      std::vector<Candidate> list = candidates_of(results_.front()->stated, restatements_, members);
      for (const RowIndex& row : rows) keep_right_in_row(*results_.front(), inputs, row, list);
      std::stable_sort(list.begin(), list.end(),
                       [](const Candidate& a, const Candidate& b) { return a.tightness > b.tightness; });
      for (std::size_t first = 0; first < list.size() && in_time(); first += kTogether) {
        const std::size_t count = std::min(kTogether, list.size() - first);
        std::vector<Candidate> some(list.begin() + static_cast<std::ptrdiff_t>(first),
                                    list.begin() + static_cast<std::ptrdiff_t>(first + count));
        for (std::size_t n = 0; n < results_.size() && !some.empty(); ++n) {
          if (!in_time()) return best_;
          const CaseInputs of_case = inputs_of(*results_[n]->source);
          keep_right(*results_[n], of_case.views(), threads_, some);
        }
        for (const Candidate& one : some) {
          if (is_the_best(one)) return best_;
        }
      }
    }
    return best_;
  }

 private:
  bool in_time() const { return Clock::now() < end_ && !interrupted; }

  /// Under everything that rounds more: what is wrong there is wrong under each of the candidates.
  bool widest_is_right(const Inputs& inputs, const std::vector<RowIndex>& rows) const {
    const Restatement widest{"", {}, [](Arithmetic& a) {
                               a.accumulator = a.accumulator == DType::f64 ? DType::f32 : a.accumulator;
                               a.stored_weights = a.stored_scores = DType::bf16;
                               a.score_stores = 4;
                               a.exp_ulps = a.log_ulps = 512;
                               a.tanh_ulps = 8192;
                               a.base2 = true;
                               a.fused_log2e = a.no_maximum = false;
                               a.scale = ScalePlacement::split_root;
                               a.division = Division::opencl_reciprocal;
                               a.key_block = 1;
                               a.lazy_threshold = std::max(a.lazy_threshold, 12.0);
                               a.flush_to_zero = true;
                               a.weights_from_lse = true;
                             }};
    std::vector<Candidate> one = {{{&widest}}};
    for (const RowIndex& row : rows) keep_right_in_row(*results_.front(), inputs, row, one);
    return !one.empty();
  }

  /// Asks the probes, which must not contradict the statement, and must miss each part of it that is left out, unless
  /// all is refused that they ask. Whether nothing is left to say, so that no other can be better.
  bool is_the_best(const Candidate& candidate) {
    const std::vector<ProbedStatement> findings = asked_under(candidate);
    std::size_t complaints = 0;
    for (const ProbedStatement& finding : findings) {
      if (finding.holds) continue;
      const bool own = std::any_of(candidate.changes.begin(), candidate.changes.end(),
                                   [&](const Restatement* change) { return change->probe == finding.probe; });
      if (own || finding.broken_off) return false;
      ++complaints;
    }
    for (const Restatement* change : candidate.changes) {
      if (findings.empty() || change->probe == "parts") continue;  // which no probe is about
      Candidate without = candidate;
      std::erase(without.changes, change);
      const std::vector<ProbedStatement> other = asked_under(without);
      const auto missed = std::count_if(other.begin(), other.end(), [](const ProbedStatement& s) { return !s.holds; });
      if (static_cast<std::size_t>(missed) <= complaints) return false;
    }
    if (best_.empty() || complaints < complaints_of_best_) {
      best_.clear();
      for (const Restatement* change : candidate.changes)
        best_.insert(best_.end(), change->fields.begin(), change->fields.end());
      complaints_of_best_ = complaints;
    }
    return complaints == 0;
  }

  std::vector<ProbedStatement> asked_under(const Candidate& candidate) {
    Restated restated(backend_, [&](Arithmetic& a) { a = candidate.made_of(a); });
    return probe_arithmetic_in(restated, dtype_);
  }

  std::vector<const WrongResult*> results_;
  Backend& backend_;
  int threads_;
  Clock::time_point end_;
  DType dtype_ = DType::f32;
  std::vector<Restatement> restatements_;
  std::vector<StatedField> best_;
  std::size_t complaints_of_best_ = 0;
};

std::string names_of(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType type : types) names.emplace_back(name_of(type));
  return join_texts(names, ", ");
}

}  // namespace

bool may_be_of_statement(const Verdict& verdict) {
  switch (verdict.cause.kind) {
    case Cause::outside_bound:
    case Cause::not_finite:
    case Cause::beyond_roundings: return is_failure(verdict);
    default: return false;
  }
}

std::string RightIf::statement() const {
  std::vector<std::string> texts;
  for (const Part& part : parts) texts.push_back(statement_text(part.fields) + " for calls in " + names_of(part.types));
  return join_texts(texts, "; ");
}

std::string RightIf::code(StatementLanguage language) const {
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    texts.push_back(statement_code(part.fields, language) +
                    (parts.size() > 1 ? " for calls in " + names_of(part.types) : ""));
  }
  return join_texts(texts, "; ");
}

void WrongResults::add(WrongResult result) {
  bytes_ += 8.0 * static_cast<double>(result.source->problem.call.batch * result.source->problem.call.query_heads) *
            static_cast<double>(result.source->problem.call.query_length) *
            static_cast<double>(
                result.source->problem.call.value_dim +
                (result.source->problem.call.wants_scores() ? 4 * result.source->problem.call.key_length : 0));
  if (bytes_ > kMostKeptBytes) {
    add_unexplained();
    list_.clear();
  }
  if (explained_) list_.push_back(std::move(result));
}

std::optional<RightIf> WrongResults::right_if(Backend& backend, int threads, double seconds) const {
  if (!explained_ || list_.empty()) return std::nullopt;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::map<DType, std::vector<const WrongResult*>> by_type;
  for (const WrongResult& result : list_) by_type[result.source->problem.call.dtype].push_back(&result);
  RightIf found;
  for (auto& [type, results] : by_type) {
    const std::vector<StatedField> fields = Search(results, backend, threads, end).fields();
    if (fields.empty()) return std::nullopt;
    const auto same = std::find_if(found.parts.begin(), found.parts.end(),
                                   [&](const RightIf::Part& part) { return part.fields == fields; });
    if (same != found.parts.end())
      same->types.push_back(type);
    else
      found.parts.push_back({{type}, fields});
  }
  return found;
}

}  // namespace attest

#include "harness/verdict/known_mistakes.h"

#include <algorithm>

#include "harness/comparison/compare.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr std::size_t kMostTold = 3;
/// Beyond these multiply-adds of the reference, and with what each mistake costs, a diagnosis takes longer than it is
/// worth.
constexpr double kMostWork = 2e8;

/// Whether every row has a position in the tables of rope: a mistake may have moved the diagonal, or added keys.
bool has_positions(const MistakenCall& c) {
  const Call& p = c.call;
  if (p.rope == Rope::none) return true;
  if (p.rope_positions > 0) return p.key_length <= c.inputs.at(TensorId::k_positions).shape[2];
  const std::int64_t rows = c.inputs.at(TensorId::cos).shape[2];
  for (std::int64_t b = 0; b < p.batch; ++b) {
    if (p.diagonal_offset(b) < 0 || p.diagonal_offset(b) + p.query_length > rows) return false;
  }
  return p.key_length <= rows;
}

/// The mistaken call; false where the mistake would change nothing, or there is no such call.
/// Mistakes change where keys lie, which a call that appends says otherwise, and one whose cached keys differ.
bool make_mistaken(const KnownMistake& mistake, MistakenCall& call) {
  if (call.call.append || call.call.rotated_cache) return false;
  return (!mistake.change || mistake.change(call)) && has_positions(call);
}

/// Whether o and lse of the worst row are what the mistake gives, as far as one row tells.
bool fits_worst_row(const MistakenCall& c, const Producer& producer, const GuardedOutputs& outputs, const Index4& at) {
  const Call& p = c.call;
  const auto head = operator_of(p).head(p, c.inputs, at[0], at[1], {{reference_arithmetic(), DType::f64}, producer});
  ResultValues row, own, bound;
  head->attend(at[2], row);
  head->bound(0, own);
  head->bound(1, bound);
  return error_in_row(p, outputs, {at[0], at[1], at[2]}, row, own, bound) <= 1;
}

Expectation expect_of(const KnownMistake& mistake, const MistakenCall& c, const Problem& problem,
                      const Producer& producer, int threads) {
  Expectation e = expect({c.call, problem.data}, c.inputs, {producer}, threads);
  if (mistake.change_results && !mistake.change_results(problem, e, e.bounds.front(), e.own, e.rows)) e.rows.clear();
  return e;
}

/// Of all mistakes, or of `these`.
std::vector<std::string> those_that_give(const std::vector<std::string>* these, const Problem& problem,
                                         const Inputs& inputs, const Producer& producer, const GuardedOutputs& outputs,
                                         const WorstElement& worst, int threads) {
  std::vector<std::string> names;
  if (dense_multiply_adds(problem) > kMostWork) return names;
  const bool is_row = worst.output == "o" || worst.output == "lse";
  for (const KnownMistake& mistake : known_mistakes()) {
    if (mistake.of_gradients ? !problem.call.wants_gradients() : !problem.call.runs_forward()) continue;
    if (these && std::find(these->begin(), these->end(), mistake.name) == these->end()) continue;
    MistakenCall c{problem.call, inputs};
    if (!make_mistaken(mistake, c)) continue;
    if (is_row && !mistake.change_results && !fits_worst_row(c, producer, outputs, worst.index)) continue;
    const Expectation e = expect_of(mistake, c, problem, producer, threads);
    if (e.rows.empty()) continue;
    const Comparison comparison = compare_outputs(problem, e, e.bounds.front(), outputs);
    if (!comparison.failed() && !comparison.inconclusive()) names.emplace_back(mistake.name);
  }
  return names;
}

}  // namespace

Expectation expect_mistaken(const KnownMistake& mistake, const Problem& problem, const Inputs& inputs,
                            const Producer& producer, int threads) {
  MistakenCall c{problem.call, inputs};
  if (!make_mistaken(mistake, c)) return {};
  return expect_of(mistake, c, problem, producer, threads);
}

std::vector<std::string> mistakes_that_give(const Problem& problem, const Inputs& inputs, const Producer& producer,
                                            const GuardedOutputs& outputs, const WorstElement& worst, int threads) {
  return those_that_give(nullptr, problem, inputs, producer, outputs, worst, threads);
}

std::vector<std::string> MistakeFinder::find(const Problem& problem, const Inputs& inputs, const Producer& producer,
                                             const GuardedOutputs& outputs, const WorstElement& worst, int threads) {
  std::vector<std::string> names;
  if (!fitted_.empty()) names = those_that_give(&fitted_, problem, inputs, producer, outputs, worst, threads);
  if (!names.empty() || whole_ == kWholeTable) return names;
  ++whole_;
  names = those_that_give(nullptr, problem, inputs, producer, outputs, worst, threads);
  for (const std::string& name : names) {
    if (std::find(fitted_.begin(), fitted_.end(), name) == fitted_.end()) fitted_.push_back(name);
  }
  return names;
}

std::string mistakes_text(const std::vector<std::string>& names) {
  std::string text;
  std::size_t told = 0;
  for (const std::string& name : names) {
    const auto found = std::find_if(known_mistakes().begin(), known_mistakes().end(),
                                    [&](const KnownMistake& m) { return m.name == name; });
    if (found == known_mistakes().end()) continue;
    if (++told > kMostTold) return text + ", and with others";
    text += (told == 1 ? "the output is what one gets with " : ", or with ") + std::string(found->text);
  }
  return text;
}

}  // namespace attest

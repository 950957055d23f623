#include "harness/trace/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/probe/right_if.h"
#include "harness/tuning/parameters.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/prepared_case.h"
#include "reference/merge/part_merge.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/gradient_terms.h"

namespace attest {
namespace {

/// To find a statement under which the case would be right.
constexpr double kStatementSeconds = 10;

struct Element {
  const TensorRow* result;
  Index4 index;
  double got, expected, bound;
  /// In units of the bound.
  double ratio() const { return error_in_bounds(got, expected, bound); }
};

std::string ranges_of(const std::vector<char>& seen) {
  std::string text;
  int shown = 0;
  for (std::size_t j = 0; j < seen.size(); ++j) {
    if (!seen[j]) continue;
    std::size_t last = j;
    while (last + 1 < seen.size() && seen[last + 1]) ++last;
    if (++shown > 8) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(j) + (last > j ? "-" + std::to_string(last) : "");
    j = last;
  }
  return text.empty() ? "none" : text;
}

void print_numbers(const Element& e, std::FILE* out) {
  fmt::print(out,
             "  got       {:.9g}\n  expected  {:.17g}\n  error     {:.3g}\n  bound     {:.3g}   error/bound {:.3g}{}\n",
             e.got, e.expected, std::fabs(e.got - e.expected), e.bound, e.ratio(), e.ratio() <= 1 ? "" : "   FAIL");
}

/// A line of the table of terms; nothing for a term that is no part of the bound worth a line.
void print_term(std::string_view name, double term, double bound, std::string_view text, std::FILE* out) {
  if (term > 1e-6 * bound) fmt::print(out, "    {:<12} {:<10.3g} {}\n", name, term, text);
}

void print_gradient_terms(const Call& p, const Inputs& inputs, const Element& e, const Arithmetic& arithmetic,
                          std::FILE* out) {
  const TensorId id = e.result->id;
  const GradientTerms t = terms_of_gradient(p, inputs, {arithmetic, {}}, id, e.index);
  if (t.pairs.empty()) return;
  const bool by_loss = id == TensorId::dv;
  fmt::print(out, "  a sum over {} pairs of query and key\n  the bound, term by term\n", t.pairs.size());
  print_term("weights", t.scores.weights, e.bound,
             arithmetic.of(id).kept_weights ? "errors of the weights, kept from the forward pass"
                                            : "errors of exp(score - lse): of scores, lse, exp",
             out);
  print_term("dP", t.scores.products, e.bound, fmt::format("rounding of do*v over {} columns", p.value_dim), out);
  print_term("D", t.scores.delta, e.bound,
             arithmetic.of(id).delta_from_weights ? "errors of D, the sum of P*dP" : "errors of D, the sum of do*o",
             out);
  print_term("dS", t.scores.difference, e.bound, "rounding of P * (dP - D)", out);
  print_term("softcap", t.scores.softcap, e.bound, "of the cap's derivative", out);
  print_term("stored dS", t.scores.storage, e.bound, "rounding of dS to the type in which it is stored", out);
  print_term("sum", t.sums.rounding, e.bound, "rounding of the products, their sum and the scale", out);
  print_term("heads", t.sums.parts, e.bound, "rounding of what each head gives before the group is summed", out);
  print_term("underflow", t.sums.underflow, e.bound, "what numbers too small to be held may lose", out);
  print_term("storage", t.sums.storage, e.bound, fmt::format("rounding to {} at the end", name_of(type_of(p, id))),
             out);
  fmt::print(out, "  pairs with most of the bound\n    {:>6} {:>6} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "head",
             "query", "key", "weight", "dP", "dS", by_loss ? "error of P" : "error of dS", "times");
  for (std::size_t n = 0; n < std::min<std::size_t>(t.pairs.size(), 5); ++n) {
    const GradientPair& pair = t.pairs[n];
    fmt::print(out, "    {:>6} {:>6} {:>6} {:>12.5g} {:>12.5g} {:>12.5g} {:>12.3g} {:>12.5g}\n", pair.h, pair.i, pair.j,
               pair.weight, pair.product, pair.score, pair.error, pair.y);
  }
}

/// The parts of a merge with most of the weight in one element.
void print_parts(const Call& p, const Inputs& inputs, const Element& e, std::FILE* out) {
  const std::int64_t column = e.index[3];
  std::vector<PartOfRow> parts;
  for (std::int64_t x = 0; x < p.parts; ++x) {
    const auto at = [&, first = x * p.batch + e.index[0]](const ConstTensor& t, std::int64_t c) {
      return load(t.data, t.dtype, t.offset(first, e.index[1], e.index[2], c));
    };
    parts.push_back({{at(inputs.part_o(), column)}, at(inputs.part_lse(), 0), {}, 0});
  }
  const double lse = merge_parts(parts, p.base2).lse;
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t x) { return parts[x].lse; });
  fmt::print(out, "  heaviest parts of {}, {} of them empty\n    {:>6} {:>12} {:>12} {:>12}\n", p.parts,
             std::ranges::count(parts, -kInfinity, &PartOfRow::lse), "part", "lse", "weight", "value");
  for (std::size_t n = 0; n < std::min<std::size_t>(order.size(), 5); ++n) {
    const PartOfRow& part = parts[order[n]];
    if (part.lse == -kInfinity) break;
    const double weight = p.base2 ? std::exp2(part.lse - lse) : std::exp(part.lse - lse);
    fmt::print(out, "    {:>6} {:>12.5g} {:>12.5g} {:>12.5g}\n", order[n], part.lse, weight, part.out[0]);
  }
}

void print_element(const Call& p, const Inputs& inputs, const Element& e, const Arithmetic& arithmetic,
                   std::FILE* out) {
  const auto [b, h, i, column] = e.index;
  if (e.result->id != TensorId::out) {
    fmt::print(out, "\n{}\n", place_text(e.result->name, e.index));
    print_numbers(e, out);
    if (e.result->id != TensorId::dsinks && p.has_scores()) print_gradient_terms(p, inputs, e, arithmetic, out);
    return;
  }
  fmt::print(out, "\no[{},{},{},{}]   batch {}, head {}, query {}, column {}\n", b, h, i, column, b, h, i, column);
  print_numbers(e, out);
  if (p.has_parts()) print_parts(p, inputs, e, out);
  if (!p.has_scores()) return;
  const Head head(p, inputs, b, h);
  Row row;
  head.attend(i, row);
  fmt::print(out, "  keys seen {} of {}: {}\n", row.visible_count, p.key_length, ranges_of(row.seen));
  if (row.visible_count == 0) return;

  RowBound bound;
  bound_row(head, row, i, {arithmetic.of(TensorId::out), {}}, bound, column);
  const RowBound::Terms& t = bound.terms;
  fmt::print(out, "  the bound, term by term\n");
  fmt::print(out, "    scores       {:<10.3g} largest error of a score: rounding of {} products and their sum\n",
             t.score, p.key_dim);
  fmt::print(out, "    weights      {:<10.3g} what that, exp and the running maximum do to the weights, summed\n",
             t.weight);
  fmt::print(out, "    centred      {:<10.3g} the weights' errors times the distance of each value from the output\n",
             t.centred);
  fmt::print(out, "    products     {:<10.3g} rounding of P*V over {} keys\n", t.products, row.visible_count);
  fmt::print(out, "    division     {:<10.3g} rounding of the sum of weights and of the division by it\n", t.division);
  fmt::print(out, "    underflow    {:<10.3g} what numbers too small to be held may lose\n", t.underflow);
  fmt::print(out, "    storage      {:<10.3g} rounding to {} at the end\n", t.storage,
             name_of(type_of(p, TensorId::out)));
  bound_row(head, row, i, {reference_arithmetic(), DType::f64}, bound);
  fmt::print(out, "    reference    {:<10.3g} the reference's own rounding in float64\n",
             bound.output[static_cast<std::size_t>(column)]);

  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j]) order.push_back(j);
  }
  const std::size_t shown = std::min<std::size_t>(order.size(), 5);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t c) { return row.weights[a] > row.weights[c]; });
  fmt::print(out, "  heaviest keys\n    {:>6} {:>12} {:>12} {:>12} {:>12}\n", "key", "score", "with bias", "weight",
             "value");
  for (std::size_t n = 0; n < shown; ++n) {
    const std::size_t j = order[n];
    fmt::print(out, "    {:>6} {:>12.5g} {:>12.5g} {:>12.5g} {:>12.5g}\n", j, row.raw[j], row.biased[j], row.weights[j],
               head.value_row(static_cast<std::int64_t>(j))[column]);
  }
}

/// Every checked element of the output and of gradients.
std::vector<Element> elements_of(const Call& p, const Expectation& e, const Arithmetic& arithmetic,
                                 const GuardedOutputs& outputs) {
  std::vector<Element> elements;
  each_result(p, e, e.bounds_for({arithmetic, {}}), outputs,
              [&](const TensorRow& result, const Index4& at, double got, double expected, double bound) {
                if (result.id == TensorId::out || is_gradient(*result.result))
                  elements.push_back({&result, at, got, expected, bound});
              });
  return elements;
}

}  // namespace

Verdict explain(const Case& source, Backend& backend, int threads, int elements, std::FILE* out) {
  const Problem& p = source.problem;
  PreparedCase prepared(source, {&backend}, threads);
  prepared.diagnose_failures();
  WrongResults wrong;
  prepared.keep_wrong_results(
      [&](const Verdict& v, const Arithmetic& stated, std::shared_ptr<const GuardedOutputs> kept) {
        if (may_be_of_statement(v)) wrong.add({&source, stated, std::move(kept)});
      });
  Verdict verdict = prepared.check(backend);
  const Identity identity = identity_of(backend);
  if (verdict.status == Status::refused) {
    fmt::print(out, "{} refuses this case: {}\n", identity.name, printable(verdict.reason));
    return verdict;
  }
  fmt::print(out, "{}\n{}\n", printable_line(source.label), printable_line(description(identity)));
  fmt::print(out, "{}{}{}\n", name_of(verdict.status), verdict.reason.empty() ? "" : ": ", printable(verdict.reason));
  for (const SignedBias& bias : verdict.bias) {
    fmt::print(out, "mean error of {} over that of independent roundings: {:.3g} up, {:.3g} away from zero\n",
               bias.output, bias.up, bias.outward);
  }
  for (const Accuracy& one : verdict.accuracy) fmt::print(out, "{}\n", text_of(one));
  if (is_failure(verdict)) {
    if (const auto right_if = wrong.right_if(backend, threads, kStatementSeconds)) {
      fmt::print(out, "this case would be right if {} states {}: {}\n", printable(identity.name), right_if->statement(),
                 right_if->code(language_of(identity.plugin)));
    }
  }

  GuardedOutputs outputs(p);
  try {
    walk_once(backend, p, prepared.inputs(), outputs);
  } catch (const UnusableBackend&) {
    throw;
  } catch (const std::exception& error) {
    fmt::print(out, "nothing to explain: it threw: {}\n", printable(error.what()));
    return verdict;
  }
  const Arithmetic arithmetic = prepared.answers_of(backend).arithmetic;
  std::vector<Element> list = elements_of(p, prepared.expectation(), arithmetic, outputs);
  const std::size_t shown = std::min<std::size_t>(list.size(), static_cast<std::size_t>(elements));
  std::partial_sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), list.end(),
                    [](const Element& a, const Element& b) { return a.ratio() > b.ratio(); });
  for (std::size_t n = 0; n < shown; ++n) print_element(p, prepared.inputs(), list[n], arithmetic, out);
  return verdict;
}

}  // namespace attest

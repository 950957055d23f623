#include "harness/comparison/expectation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "harness/base/parallel.h"
#include "harness/cases/fill.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

/// Work below this many multiply-adds is not worth a second thread.
constexpr double kWorthThreads = 5e5;

struct Span {
  std::size_t first, last;  ///< rows of one head
};

/// Cuts the sorted rows where the head changes, and further so that every thread has work.
std::vector<Span> split_rows(const std::vector<RowIndex>& rows, std::size_t max_rows) {
  std::vector<Span> spans;
  std::size_t first = 0;
  for (std::size_t n = 1; n <= rows.size(); ++n) {
    const bool other_head = n == rows.size() || rows[n].b != rows[first].b || rows[n].h != rows[first].h;
    if (other_head || n - first >= max_rows) {
      spans.push_back({first, n});
      first = n;
    }
  }
  return spans;
}

/// What HeadReference::attend gives of every row.
std::vector<TensorId> results_of_rows(const Problem& p) {
  std::vector<TensorId> results;
  for (const TensorRow& result : tensor_rows()) {
    if (!is_output(result.id) || index_space(result.id) != IndexSpace::query_rows) continue;
    const bool is_given =
        has_tensor(p, result.id) || (result.id == TensorId::lse && p.call.has_lse() && p.call.runs_forward());
    if (is_given) results.push_back(result.id);
  }
  return results;
}

/// Sampled elements and their deviations, the reference's own before those of each producer.
struct Samples {
  std::vector<SampledElement> elements;
  std::vector<std::vector<double>> deviations;

  void add_to(Expectation& e) const {
    e.sampled.insert(e.sampled.end(), elements.begin(), elements.end());
    for (std::size_t n = 0; n < elements.size(); ++n) {
      // Where the operator claims nothing of the reference, its bound counts whole.
      double own = deviations[0][n];
      if (!std::isfinite(own)) own = e.own.of(elements[n].result)[elements[n].place] / kSuspectDeviations;
      for (std::size_t m = 0; m < e.producers.size(); ++m)
        e.deviations[m].push_back(std::hypot(deviations[m + 1][n], own));
    }
  }
};

/// The rows before, at and after each power of two of an extent, at the end of the others: where counters, grids and
/// tiles end.
std::vector<RowIndex> rows_at_powers_of_two(const Call& p) {
  const std::int64_t b = p.batch - 1, h = p.query_heads - 1, rows_of_last = p.stored_queries(b);
  std::vector<RowIndex> rows;
  for (std::int64_t power = 1; power <= std::max({p.batch, p.query_heads, rows_of_last}); power *= 2) {
    for (std::int64_t at = power - 1; at <= power + 1; ++at) {
      if (at < p.batch) rows.push_back({at, h, p.stored_queries(at) - 1});
      if (at < p.query_heads) rows.push_back({b, at, rows_of_last - 1});
      if (at < rows_of_last) rows.push_back({b, h, at});
    }
  }
  std::erase_if(rows, [](const RowIndex& row) { return row.i < 0; });  // of an empty sequence
  return rows;
}

}  // namespace

std::vector<RowIndex> rows_to_check(const Problem& problem, double budget) {
  const Call& p = problem.call;
  const double total =
      static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length);
  const double per_row = std::max(operator_of(p).row_operations(p), kLeastRowCost);
  std::vector<RowIndex> rows;
  if (total * per_row <= budget) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.stored_queries(b); ++i) rows.push_back({b, h, i});
      }
    }
    return rows;
  }
  const auto wanted = static_cast<std::size_t>(std::clamp(budget / per_row, 16.0, total));
  std::set<RowIndex> chosen;
  const std::int64_t last = p.query_length - 1;
  for (std::int64_t i : {std::int64_t{0}, last, std::min<std::int64_t>(63, last), std::min<std::int64_t>(64, last)}) {
    chosen.insert({0, 0, i});
    chosen.insert({p.batch - 1, p.query_heads - 1, i});
  }
  // They are affordable where a row is cheap.
  if (const std::vector<RowIndex> edges = rows_at_powers_of_two(p); 2 * edges.size() < wanted)
    chosen.insert(edges.begin(), edges.end());
  for (std::uint64_t n = 0; chosen.size() < wanted && n < 16 * wanted; ++n) {
    const auto draw = [&](std::uint64_t stream, std::int64_t extent) {
      return static_cast<std::int64_t>(hash_words(problem.data.seed, stream, n) % static_cast<std::uint64_t>(extent));
    };
    std::int64_t i = draw(5002, p.query_length);
    // Every other row lies beside an edge of a tile: one before, on, or one after a multiple of 16.
    if (n % 2 == 1) i = std::clamp<std::int64_t>(i / 16 * 16 + draw(5003, 3) - 1, 0, last);
    chosen.insert({draw(5000, p.batch), draw(5001, p.query_heads), i});
  }
  std::erase_if(chosen, [&](const RowIndex& row) { return row.i >= p.stored_queries(row.b); });
  rows.assign(chosen.begin(), chosen.end());
  return rows;
}

std::vector<char> key_heads_to_check(const Problem& problem, double budget) {
  const Call& p = problem.call;
  const auto heads = static_cast<std::size_t>(p.batch * p.key_heads);
  const double rows = static_cast<double>(p.heads_per_group()) * static_cast<double>(p.query_length);
  const double per_head = rows * std::max(operator_of(p).row_operations(p), kLeastRowCost);
  if (!p.wants_gradients() || static_cast<double>(heads) * per_head <= budget) return {};
  std::vector<char> chosen(heads, 0);
  const auto wanted = static_cast<std::size_t>(std::max(budget / per_head, 1.0));
  // The last one, then drawn ones: an offset that is too small shows there.
  chosen.back() = 1;
  for (std::uint64_t n = 1; n < wanted; ++n) chosen[hash_words(problem.data.seed, 5010, n) % heads] = 1;
  return chosen;
}

std::size_t Expectation::index_of(const Producer& producer) const {
  const auto found = std::find(producers.begin(), producers.end(), producer);
  if (found == producers.end()) throw std::logic_error("no bound was derived for this arithmetic");
  return static_cast<std::size_t>(found - producers.begin());
}

Index4 Expectation::indices_of(const Call& call, const SampledElement& element) const {
  const Index4 n = seen_shape(call, element.result);
  const auto at = static_cast<std::int64_t>(element.place), row = at / n[3];
  if (index_space(element.result) != IndexSpace::query_rows)
    return {row / (n[1] * n[2]), row / n[2] % n[1], row % n[2], at % n[3]};
  const RowIndex& index = rows[static_cast<std::size_t>(row)];
  return {index.b, index.h, index.i, at % n[3]};
}

Expectation expect(const Problem& p, const Inputs& inputs, const std::vector<Producer>& producers, int threads,
                   double budget) {
  const Operator& reference = operator_of(p);
  Expectation e;
  e.rows = rows_to_check(p, budget);
  e.key_heads = key_heads_to_check(p, budget);
  for (const Producer& producer : producers) {
    if (std::find(e.producers.begin(), e.producers.end(), producer) == e.producers.end()) {
      e.producers.push_back(producer);
    }
  }
  e.bounds.resize(e.producers.size());
  const std::vector<TensorId> results = results_of_rows(p);
  const auto resize = [&](ResultValues& values) {
    for (const TensorId id : results)
      values.of(id).resize(e.rows.size() * static_cast<std::size_t>(seen_shape(p, id)[3]));
  };
  const auto set_row = [&](ResultValues& values, std::size_t r, const ResultValues& row) {
    for (const TensorId id : results) {
      const std::vector<double>& from = row.of(id);
      std::ranges::copy(from, values.of(id).begin() + static_cast<std::ptrdiff_t>(r * from.size()));
    }
  };
  resize(e);
  resize(e.own);
  for (Bounds& bounds : e.bounds) resize(bounds);

  std::vector<Producer> all = {{reference_arithmetic(), DType::f64}};
  all.insert(all.end(), e.producers.begin(), e.producers.end());
  const auto bounds_of = [&](std::size_t n) -> Bounds& { return n == 0 ? e.own : e.bounds[n - 1]; };
  const double work =
      static_cast<double>(e.rows.size()) * reference.row_operations(p) * static_cast<double>(2 + e.producers.size());
  if (work < kWorthThreads) threads = 1;
  const std::size_t share = e.rows.size() / (static_cast<std::size_t>(threads) * 4) + 1;
  const std::vector<Span> spans = split_rows(e.rows, threads > 1 ? share : e.rows.size() + 1);
  // Sampled rows lie evenly among the checked ones, the first and the last with them.
  std::vector<TensorId> sampled_results;
  if (p.call.wants(Output::o)) sampled_results.push_back(TensorId::out);
  if (has_tensor(p, TensorId::dq)) sampled_results.push_back(TensorId::dq);
  const std::size_t sampled = sampled_results.empty() ? 0 : std::min(kSampledRows, e.rows.size());
  std::vector<std::size_t> sample_rows(sampled);
  for (std::size_t n = 0; n < sampled; ++n) {
    sample_rows[n] = sampled == 1 ? 0 : n * (e.rows.size() - 1) / (sampled - 1);
  }
  std::vector<std::vector<Samples>> samples(sampled);  // by sampled row and result

  parallel_for(spans.size(), threads, [&](std::size_t s) {
    const Span span = spans[s];
    const auto head = reference.head(p, inputs, e.rows[span.first].b, e.rows[span.first].h, all);
    ResultValues row;
    for (std::size_t r = span.first; r < span.last; ++r) {
      head->attend(e.rows[r].i, row);
      set_row(e, r, row);
      for (std::size_t n = 0; n < all.size(); ++n) {
        head->bound(n, row);
        set_row(bounds_of(n), r, row);
      }
      if (const auto found = std::lower_bound(sample_rows.begin(), sample_rows.end(), r);
          found != sample_rows.end() && *found == r) {
        for (const TensorId result : sampled_results) {
          const std::int64_t columns = seen_shape(p, result)[3];
          Samples one{{}, head->deviations(result, sampled_columns(r, columns))};
          for (const std::int64_t c :
               one.deviations.empty() ? std::vector<std::int64_t>() : sampled_columns(r, columns))
            one.elements.push_back({result, r * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)});
          samples[static_cast<std::size_t>(found - sample_rows.begin())].push_back(std::move(one));
        }
      }
    }
  });
  e.deviations.resize(e.producers.size());
  for (const std::vector<Samples>& of_row : samples) {
    for (const Samples& one : of_row) one.add_to(e);
  }
  std::vector<TensorId> others = outputs_of(p);
  std::erase_if(others, [](TensorId id) { return index_space(id) == IndexSpace::query_rows; });
  WholeResults whole = reference.whole(p, inputs, others, all, e.key_heads);
  for (const TensorId result : others) {
    e.of(result) = std::move(whole.values.of(result));
    for (std::size_t n = 0; n < all.size(); ++n) bounds_of(n).of(result) = std::move(whole.bounds[n].of(result));
  }
  Samples{std::move(whole.sampled), std::move(whole.deviations)}.add_to(e);
  return e;
}

}  // namespace attest

#include "harness/expectation.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "harness/fill.h"
#include "harness/parallel.h"
#include "reference/attention.h"
#include "reference/error_bound.h"

namespace attest {
namespace {

/// Work below this many multiply-adds is not worth a second thread.
constexpr double kWorthThreads = 5e5;

struct Span {
  std::size_t first, last;  ///< rows of one head
};

/// Cuts the sorted rows where the head changes, and further so that every thread has work.
std::vector<Span> split_rows(const std::vector<RowIndex>& rows, std::size_t most) {
  std::vector<Span> spans;
  std::size_t first = 0;
  for (std::size_t n = 1; n <= rows.size(); ++n) {
    const bool other_head = n == rows.size() || rows[n].b != rows[first].b || rows[n].h != rows[first].h;
    if (other_head || n - first >= most) {
      spans.push_back({first, n});
      first = n;
    }
  }
  return spans;
}

}  // namespace

std::vector<RowIndex> rows_to_check(const Problem& p, double budget) {
  const double total = static_cast<double>(p.batch) * static_cast<double>(p.query_heads) *
                       static_cast<double>(p.query_length);
  const double per_row = static_cast<double>(std::max<std::int64_t>(p.key_length, 1)) *
                         static_cast<double>(p.key_dim + p.value_dim);
  std::vector<RowIndex> rows;
  if (total * per_row <= budget) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.query_length; ++i) rows.push_back({b, h, i});
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
  for (std::uint64_t n = 0; chosen.size() < wanted && n < 16 * wanted; ++n) {
    const auto draw = [&](std::uint64_t stream, std::int64_t extent) {
      return static_cast<std::int64_t>(hash_words(p.seed, stream, n) % static_cast<std::uint64_t>(extent));
    };
    std::int64_t i = draw(5002, p.query_length);
    // Every other row lies beside an edge of a tile: one before, on, or one after a multiple of 16.
    if (n % 2 == 1) i = std::clamp<std::int64_t>(i / 16 * 16 + draw(5003, 3) - 1, 0, last);
    chosen.insert({draw(5000, p.batch), draw(5001, p.query_heads), i});
  }
  rows.assign(chosen.begin(), chosen.end());
  return rows;
}

const Bounds& Expectation::bounds_for(const Producer& producer) const {
  const auto found = std::find(producers.begin(), producers.end(), producer);
  if (found == producers.end()) throw std::logic_error("no bound was derived for this arithmetic");
  return bounds[static_cast<std::size_t>(found - producers.begin())];
}

Expectation expect(const Problem& p, const Inputs& inputs, const std::vector<Producer>& producers, int threads,
                   double budget) {
  Expectation e;
  e.rows = rows_to_check(p, budget);
  for (const Producer& producer : producers) {
    if (std::find(e.producers.begin(), e.producers.end(), producer) == e.producers.end()) {
      e.producers.push_back(producer);
    }
  }
  const auto columns = static_cast<std::size_t>(p.value_dim);
  const auto size = [&](Bounds& bounds) {
    bounds.out.resize(e.rows.size() * columns);
    bounds.lse.resize(e.rows.size());
  };
  e.out.resize(e.rows.size() * columns);
  e.lse.resize(e.rows.size());
  size(e.own);
  e.bounds.resize(e.producers.size());
  for (Bounds& bounds : e.bounds) size(bounds);

  const double work = static_cast<double>(e.rows.size()) * static_cast<double>(p.key_length) *
                      static_cast<double>(p.key_dim + p.value_dim) * static_cast<double>(2 + e.producers.size());
  if (work < kWorthThreads) threads = 1;
  const std::size_t share = e.rows.size() / (static_cast<std::size_t>(threads) * 4) + 1;
  const std::vector<Span> spans = split_rows(e.rows, threads > 1 ? share : e.rows.size() + 1);
  std::vector<double> visible_pairs(spans.size());

  parallel_for(spans.size(), threads, [&](std::size_t n) {
    const Span span = spans[n];
    const Head head(p, inputs, e.rows[span.first].b, e.rows[span.first].h);
    Row row;
    RowBound bound;
    for (std::size_t r = span.first; r < span.last; ++r) {
      head.attend(e.rows[r].i, row);
      visible_pairs[n] += static_cast<double>(row.visible_count);
      std::copy(row.output.begin(), row.output.end(), e.out.begin() + static_cast<std::ptrdiff_t>(r * columns));
      e.lse[r] = row.lse;
      const auto store = [&](Bounds& bounds) {
        std::copy(bound.output.begin(), bound.output.end(),
                  bounds.out.begin() + static_cast<std::ptrdiff_t>(r * columns));
        bounds.lse[r] = bound.lse;
      };
      bound_row(head, row, reference_arithmetic(), DType::f64, bound);
      store(e.own);
      for (std::size_t a = 0; a < e.producers.size(); ++a) {
        bound_row(head, row, e.producers[a].arithmetic, e.producers[a].stored, bound);
        store(e.bounds[a]);
      }
    }
  });
  for (double pairs : visible_pairs) e.visible_pairs += pairs;
  return e;
}

double count_visible_pairs(const Problem& p, const Inputs& inputs) {
  if (!inputs.mask) {
    // Without a mask every head and batch sees the same, and a row sees one interval of keys.
    double pairs = 0;
    for (std::int64_t i = 0; i < p.query_length; ++i) {
      const std::int64_t diagonal = i + p.diagonal_offset();
      std::int64_t first = 0, last = p.key_length;
      if (p.causal) last = std::min(last, diagonal + 1);
      if (p.window_right < p.key_length - diagonal) last = std::min(last, diagonal + p.window_right + 1);
      if (p.window_left != Problem::kUnbounded) first = std::max(first, diagonal - p.window_left);
      pairs += static_cast<double>(std::max<std::int64_t>(last - first, 0));
    }
    return pairs * static_cast<double>(p.batch * p.query_heads);
  }
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        for (std::int64_t j = 0; j < p.key_length; ++j) pairs += visible(p, inputs, b, h, i, j);
      }
    }
  }
  return pairs;
}

}  // namespace attest

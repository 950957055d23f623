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

/// Query rows of batch b that exist.
std::int64_t stored_rows(const Problem& p, std::int64_t b) {
  return p.packed_sequences() ? p.query_count(b) : p.query_length;
}

/// Room for every row; stages only where asked for.
void resize(RowValues& values, const Problem& p, std::size_t rows) {
  values.out.resize(rows * static_cast<std::size_t>(p.value_dim));
  values.lse.resize(rows);
  for (std::size_t n = 0; n < kScoreStages.size(); ++n) {
    if (p.wants(kScoreStages[n])) values.stages[n].resize(rows * static_cast<std::size_t>(p.key_length));
  }
}

/// Row r of each list becomes what `out`, `lse` and the four stages hold.
void set_row(RowValues& values, std::size_t r, const std::vector<double>& out, double lse,
             const std::array<const std::vector<double>*, 4>& stages) {
  std::copy(out.begin(), out.end(), values.out.begin() + static_cast<std::ptrdiff_t>(r * out.size()));
  values.lse[r] = lse;
  for (std::size_t n = 0; n < stages.size(); ++n) {
    if (values.stages[n].empty()) continue;
    std::copy(stages[n]->begin(), stages[n]->end(),
              values.stages[n].begin() + static_cast<std::ptrdiff_t>(r * stages[n]->size()));
  }
}

/// biased as it is handed out: -inf where hidden.
const std::vector<double>& hide(Row& row) {
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) row.biased[j] = -kInfinity;
  }
  return row.biased;
}

}  // namespace

std::vector<RowIndex> rows_to_check(const Problem& p, double budget) {
  const double total =
      static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length);
  const double per_row =
      static_cast<double>(std::max<std::int64_t>(p.key_length, 1)) * static_cast<double>(p.key_dim + p.value_dim);
  std::vector<RowIndex> rows;
  if (total * per_row <= budget) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < stored_rows(p, b); ++i) rows.push_back({b, h, i});
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
  std::erase_if(chosen, [&](const RowIndex& row) { return row.i >= stored_rows(p, row.b); });
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
  resize(e, p, e.rows.size());
  resize(e.own, p, e.rows.size());
  e.bounds.resize(e.producers.size());
  for (Bounds& bounds : e.bounds) resize(bounds, p, e.rows.size());

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
      const auto keep = [&](Bounds& bounds) {
        set_row(bounds, r, bound.output, bound.lse, {&bound.raw, &bound.capped, &bound.biased, &bound.weights});
      };
      bound_row(head, row, e.rows[r].i, reference_arithmetic(), DType::f64, bound);
      keep(e.own);
      for (std::size_t a = 0; a < e.producers.size(); ++a) {
        bound_row(head, row, e.rows[r].i, e.producers[a].arithmetic, e.producers[a].stored, bound);
        keep(e.bounds[a]);
      }
      set_row(e, r, row.output, row.lse, {&row.raw, &row.capped, &hide(row), &row.weights});
    }
  });
  for (double pairs : visible_pairs) e.visible_pairs += pairs;
  return e;
}

namespace {

/// Keys that row i of batch b sees when neither segments nor masks decide: the band, and the prefix outside it.
std::int64_t count_in_band(const Problem& p, std::int64_t b, std::int64_t i) {
  const std::int64_t diagonal = i + p.diagonal_offset(b), keys = p.key_count(b);
  std::int64_t first = 0, last = keys;
  if (p.causal) last = std::min(last, diagonal + 1);
  if (p.window_right < keys - diagonal) last = std::min(last, diagonal + p.window_right + 1);
  if (p.window_left != Problem::kUnbounded) first = std::max(first, diagonal - p.window_left);
  last = std::max(first, last);
  const std::int64_t prefix = std::min(p.prefix, keys);
  const std::int64_t shared = std::max<std::int64_t>(std::min(last, prefix) - first, 0);
  return last - first + prefix - shared;
}

}  // namespace

double count_visible_pairs(const Problem& p, const Inputs& inputs) {
  // Without a mask every head sees the same.
  const bool by_head = inputs.mask || inputs.blocks, simple = !by_head && !p.segments;
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < (by_head ? p.query_heads : 1); ++h) {
      for (std::int64_t i = 0; i < p.query_count(b); ++i) {
        if (simple) pairs += static_cast<double>(count_in_band(p, b, i));
        for (std::int64_t j = 0; !simple && j < p.key_count(b); ++j) pairs += visible(p, inputs, b, h, i, j);
      }
    }
  }
  return by_head ? pairs : pairs * static_cast<double>(p.query_heads);
}

}  // namespace attest

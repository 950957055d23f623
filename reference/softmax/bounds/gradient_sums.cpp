#include "reference/softmax/bounds/gradient_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reference/call/tensor_table.h"
#include "reference/softmax/bounds/gradient_row.h"
#include "reference/softmax/bounds/gradient_samples.h"

namespace attest {
namespace {

/// One result: its value, and the sums that bound each element for each producer.
struct Sums {
  TensorId result;
  std::vector<double> values;
  std::vector<std::vector<GradientSum>> of_producer;
};

class Summation {
 public:
  Summation(const Call& p, const Inputs& inputs, const std::vector<TensorId>& results,
            const std::vector<Producer>& producers, const std::vector<char>& of_key_heads)
      : p_(p),
        inputs_(inputs),
        producers_(producers),
        of_key_heads_(of_key_heads),
        rows_(p, inputs, producers),
        samples_(p, results, producers, of_key_heads) {
    for (const TensorId id : results) {
      const Index4 n = seen_shape(p, id);
      const auto count = static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]);
      sums_.push_back({id, std::vector<double>(count), {producers.size(), std::vector<GradientSum>(count)}});
    }
  }

  WholeResults all() {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t g = 0; g < p_.key_heads; ++g) {
        const auto at = static_cast<std::size_t>(b * p_.key_heads + g);
        if (!of_key_heads_.empty() && !of_key_heads_[at] && !of_all_heads()) continue;
        for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) add_head(b, h);
      }
    }
    return finished();
  }

 private:
  /// Whether a result is a sum over heads or batches.
  bool of_all_heads() const {
    return std::ranges::any_of(sums_, [](const Sums& sums) { return index_space(sums.result) == IndexSpace::other; });
  }

  void add_head(std::int64_t b, std::int64_t h) {
    const Head head(p_, inputs_, b, h);
    Row row;
    for (std::int64_t i = 0; i < p_.stored_queries(b); ++i) {
      head.attend(i, row);
      rows_.set(head, row, i);
      for (Sums& sums : sums_) add_row(sums, head, row, i);
      samples_.add_row(head, row, i, rows_);
    }
    samples_.end_head(head);
    for (Sums& sums : sums_) {
      if (index_space(sums.result) == IndexSpace::key_rows) end_head(sums, head);
    }
  }

  void add_row(Sums& sums, const Head& head, const Row& row, std::int64_t i) {
    switch (sums.result) {
      case TensorId::dk: return add_to_keys(sums, head, row, rows_.gradient().raw, head.query_row(i));
      case TensorId::dv: {
        weights_ = row.weights;
        for (std::size_t j = 0; j < row.factors.size(); ++j) {
          // A hidden key counts for nothing, whatever dropout says of it.
          if (row.seen[j]) weights_[j] *= row.factors[j];
        }
        return add_to_keys(sums, head, row, weights_, rows_.loss().out);
      }
      case TensorId::dmask: return add_to_mask(sums, head, row, i);
      default: {
        if (row.sink == -kInfinity) return;
        const auto h = static_cast<std::size_t>(head.head());
        sums.values[h] += rows_.gradient().sink;
        for (std::size_t n = 0; n < producers_.size(); ++n)
          sums.of_producer[n][h].add(rows_.gradient().sink, rows_.errors(n, sums.result).sink, 1);
      }
    }
  }

  /// x_j times the row y is added to the row of each visible key j.
  void add_to_keys(Sums& sums, const Head& head, const Row& row, const std::vector<double>& x,
                   const std::vector<double>& y) {
    const std::size_t first = first_of(head, y.size());
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (!row.seen[j]) continue;
      double* to = sums.values.data() + first + j * y.size();
      for (std::size_t d = 0; d < y.size(); ++d) to[d] += x[j] * y[d];
    }
    for (std::size_t n = 0; n < producers_.size(); ++n) {
      const RowGradientErrors& errors = rows_.errors(n, sums.result);
      const std::vector<double>& off = sums.result == TensorId::dk ? errors.raw : errors.weights;
      for (std::size_t j = 0; j < row.seen.size(); ++j) {
        if (!row.seen[j]) continue;
        GradientSum* to = sums.of_producer[n].data() + first + j * y.size();
        for (std::size_t d = 0; d < y.size(); ++d) to[d].add(x[j], off[j], y[d]);
      }
    }
  }

  void add_to_mask(Sums& sums, const Head& head, const Row& row, std::int64_t i) {
    const Index4 n = seen_shape(p_, sums.result);
    const std::array<bool, 4> shared = broadcast_axes(p_, sums.result);
    const auto place = [&](std::size_t axis, std::int64_t at) { return shared[axis] ? 0 : at; };
    const std::int64_t first = ((place(0, head.batch()) * n[1] + place(1, head.head())) * n[2] + place(2, i)) * n[3];
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (!row.seen[j]) continue;
      const auto at = static_cast<std::size_t>(first + place(3, static_cast<std::int64_t>(j)));
      const double value = rows_.gradient().scores[j];
      sums.values[at] += value;
      for (std::size_t m = 0; m < producers_.size(); ++m)
        sums.of_producer[m][at].add(value, rows_.errors(m, sums.result).scores[j], 1);
    }
  }

  /// What the head gave to its keys is perhaps stored before the next head's is added.
  void end_head(Sums& sums, const Head& head) {
    const auto columns = static_cast<std::size_t>(seen_shape(p_, sums.result)[3]);
    const std::size_t first = first_of(head, columns), count = static_cast<std::size_t>(p_.key_length) * columns;
    const bool is_first = head.head() % p_.heads_per_group() == 0;
    if (is_first) before_[sums.result].assign(count, 0.0);
    std::vector<double>& before = before_[sums.result];
    for (std::size_t at = 0; at < count; ++at) {
      const double value = sums.values[first + at], of_head = std::fabs(value - before[at]);
      before[at] = value;
      for (std::vector<GradientSum>& list : sums.of_producer) {
        GradientSum& sum = list[first + at];
        sum.kept_apart += of_head;
        ++sum.parts;
      }
    }
  }

  std::size_t first_of(const Head& head, std::size_t columns) const {
    const std::int64_t key_head = head.batch() * p_.key_heads + head.head() / p_.heads_per_group();
    return static_cast<std::size_t>(key_head * p_.key_length) * columns;
  }

  WholeResults finished() {
    WholeResults all;
    all.bounds.resize(producers_.size());
    for (Sums& sums : sums_) {
      const bool by_scale = sums.result == TensorId::dk;
      const double scale = by_scale ? p_.scale_value() : 1;
      for (double& value : sums.values) value *= scale;
      for (std::size_t n = 0; n < producers_.size(); ++n) {
        const BoundConstants& c = rows_.constants(n, sums.result);
        const Storing storing(c.arithmetic, producers_[n].type_of(p_, sums.result));
        const double roundings = by_scale ? c.scale_roundings + 1 : 3;  // of the scale, or of dropout's factor
        std::vector<double>& bounds = all.bounds[n].of(sums.result);
        for (std::size_t at = 0; at < sums.values.size(); ++at)
          bounds.push_back(bound_gradient_sum(sums.of_producer[n][at], sums.values[at], scale, roundings, c, storing));
      }
      all.values.of(sums.result) = std::move(sums.values);
    }
    samples_.finish(all);
    return all;
  }

  const Call& p_;
  const Inputs& inputs_;
  const std::vector<Producer>& producers_;
  const std::vector<char>& of_key_heads_;
  GradientRow rows_;
  GradientSamples samples_;
  std::vector<Sums> sums_;
  std::vector<double> weights_;
  std::map<TensorId, std::vector<double>> before_;  ///< of a key head: its sums before the last query head
};

}  // namespace

WholeResults sum_gradients(const Call& call, const Inputs& inputs, const std::vector<TensorId>& results,
                           const std::vector<Producer>& producers, const std::vector<char>& of_key_heads) {
  return Summation(call, inputs, results, producers, of_key_heads).all();
}

}  // namespace attest

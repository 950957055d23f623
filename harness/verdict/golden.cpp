#include "harness/verdict/golden.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/refusal.h"
#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/verdict/plan_walk.h"
#include "harness/verdict/row_stages.h"
#include "reference/head_reference.h"
#include "reference/operator_tensors.h"
#include "reference/projection.h"
#include "reference/tensor_place.h"

namespace attest {
namespace {

/// Weights are compared through V = I up to this many keys: the detour costs Lk columns.
constexpr std::int64_t kMaxKeysForWeights = 512;

/// A problem whose output is its weights: V is the identity, one for each key head.
struct IdentityValues {
  Problem problem;
  TensorStorage v;

  explicit IdentityValues(const Problem& original) : problem(original) {
    problem.value_dim = original.key_length;
    problem.tensor(TensorId::v) = TensorSpec{Layout::bhld, std::nullopt, 0};
    problem.tensor(TensorId::out) = problem.tensor(TensorId::v);
    problem.outputs = {Output::o};
    v = TensorStorage(place_of(problem, TensorId::v), problem.dtype);
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t h = 0; h < problem.key_heads; ++h) {
        for (std::int64_t j = 0; j < problem.key_length; ++j) {
          for (std::int64_t c = 0; c < problem.key_length; ++c) v.set(b, h, j, c, j == c ? 1 : 0);
        }
      }
    }
  }

  Inputs inputs(Inputs from) const {
    from.v = v.view();
    return from;
  }
};

void expect_shape(const Case& source, const std::string& name, const FileTensor& tensor, std::int64_t size) {
  if (tensor.size() != size) {
    throw UserError(fmt::format("{}: tensor \"{}\" {} has {} elements, the case gives {}", source.label, name,
                                tensor.shape_text(), tensor.size(), size));
  }
}

/// Query rows of all heads that have storage.
std::int64_t stored_rows(const Problem& p) {
  std::int64_t rows = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) rows += p.query_heads * p.stored_queries(b);
  return rows;
}

/// File index of element (b, h, i, c): positions come before heads in blhd and bld files.
std::int64_t file_index(const Problem& p, const TensorPlace& queries, const FileTensor& tensor, std::int64_t b,
                        std::int64_t h, std::int64_t i, std::int64_t c, std::int64_t columns, bool follows_layout) {
  if (p.packed_sequences()) {
    return ((queries.starts[static_cast<std::size_t>(b)] + i) * p.query_heads + h) * columns + c;
  }
  const bool heads_first = !follows_layout || (p.layout == Layout::bhld && tensor.shape.size() == 4);
  return heads_first ? ((b * p.query_heads + h) * p.query_length + i) * columns + c
                     : ((b * p.query_length + i) * p.query_heads + h) * columns + c;
}

/// What the file's metadata allow around `value` of a stage.
double tolerance_of(const Golden& golden, const std::string& stage, double value) {
  const auto own = golden.stage_tolerances.find(stage);
  const double absolute = own == golden.stage_tolerances.end() ? golden.tolerance.value_or(0) : own->second;
  return absolute + (std::isfinite(value) ? golden.relative * std::fabs(value) : 0);
}

class ReferenceStages {
 public:
  ReferenceStages(const Case& source, const Inputs& inputs, Comparison& comparison)
      : source_(source),
        p_(source.problem),
        queries_(place_of(p_, TensorId::q)),
        inputs_(inputs),
        comparison_(comparison),
        rows_(reference_rows(p_, inputs)) {
    if (source.golden->producer) {
      producer_ = Producer{*source.golden->producer, p_.dtype};
    }
  }

  void compare() {
    each_row("raw", p_.key_length, [](const Row& row, std::size_t j) { return row.raw[j]; });
    each_row("capped", p_.key_length, [](const Row& row, std::size_t j) { return row.capped[j]; });
    each_row("biased", p_.key_length, [](const Row& row, std::size_t j) { return masked_scores(row)[j]; });
    present();
    each_row("scores", p_.key_length, [](const Row& row, std::size_t j) { return row.raw[j]; });
    each_row("raw_scores", p_.key_length, [&](const Row& row, std::size_t j) { return row.raw[j] / p_.scale_value(); });
    // Printed masked scores were rounded to f32 before they were printed.
    each_row("masked_scores", p_.key_length, [](const Row& row, std::size_t j) {
      return static_cast<double>(static_cast<float>(masked_scores(row)[j]));
    });
    masks();
    compare_weights();
    compare_output();
    row_statistics();
    projections();
  }

 private:
  const FileTensor* stage(const std::string& name, std::int64_t size) const {
    const auto found = source_.golden->stages.find(name);
    if (found == source_.golden->stages.end()) return nullptr;
    expect_shape(source_, name, found->second, size);
    return &found->second;
  }

  double tolerance(const std::string& stage, double value = 0) const {
    return tolerance_of(*source_.golden, stage, value);
  }

  /// A file in 16 bits holds rounded results: the reference's are rounded alike before they are compared.
  double as_stored(double value) const {
    if (size_of(p_.dtype) > 2) return value;
    std::uint16_t bits = 0;
    store(&bits, p_.dtype, 0, value);
    return load(&bits, p_.dtype, 0);
  }

  /// Copies exactly; what was computed, within the file's tolerance.
  void present() {
    for (const PresentOutput& output : present_outputs(p_)) {
      const Index4& n = output.shape;
      const FileTensor* tensor = stage(std::string(output.name), n[0] * n[1] * n[2] * n[3]);
      if (!tensor) continue;
      const PresentValues expected = expect_present(p_, inputs_, output, {{reference_arithmetic(), DType::f64}});
      std::size_t at = 0;
      each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        const double held = tensor->at(static_cast<std::int64_t>(at));
        const double allowed = output.copied ? 0 : tolerance(std::string(output.name), held) + expected.bounds[0][at];
        comparison_.element(std::string(output.name), {b, h, l, d}, held, as_stored(expected.values[at]), allowed);
        ++at;
      });
    }
  }

  std::int64_t rows() const { return stored_rows(p_); }

  template <class Get>
  void each_row(const std::string& name, std::int64_t columns, const Get& get,
                const std::vector<double>* bounds = nullptr, bool follows_layout = false) {
    const FileTensor* tensor = stage(name, rows() * columns);
    if (!tensor) return;
    std::size_t r = 0, at = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.stored_queries(b); ++i, ++r) {
          for (std::int64_t c = 0; c < columns; ++c, ++at) {
            const double held = tensor->at(file_index(p_, queries_, *tensor, b, h, i, c, columns, follows_layout));
            comparison_.element(name, {b, h, i, c}, held, as_stored(get(rows_[r], static_cast<std::size_t>(c))),
                                tolerance(name, held) + (bounds ? (*bounds)[at] : 0));
          }
        }
      }
    }
  }

  /// Bounds of the stated producer plus the reference's own, for every element of `problem`.
  std::vector<double> producer_bounds(const Problem& problem, const Inputs& inputs) const {
    const Expectation e = expect(problem, inputs, {*producer_}, 2, kInfinity);
    std::vector<double> bounds = e.bounds_for(*producer_).out;
    for (std::size_t n = 0; n < bounds.size(); ++n) bounds[n] += e.own.out[n];
    return bounds;
  }

  void compare_weights() {
    const auto get = [](const Row& row, std::size_t j) { return row.weights[j]; };
    if (producer_ && source_.golden->stages.contains("weights")) {
      const IdentityValues identity(p_);
      const std::vector<double> bounds = producer_bounds(identity.problem, identity.inputs(inputs_));
      each_row("weights", p_.key_length, get, &bounds);
    } else {
      each_row("weights", p_.key_length, get);
    }
  }

  void compare_output() {
    const auto get = [](const Row& row, std::size_t c) { return row.output[c]; };
    if (producer_ && source_.golden->stages.contains("output")) {
      const std::vector<double> bounds = producer_bounds(p_, inputs_);
      each_row("output", p_.value_dim, get, &bounds, true);
    } else {
      each_row("output", p_.value_dim, get, nullptr, true);
    }
  }

  void list(const std::string& name, const std::vector<double>& values) {
    const FileTensor* tensor = stage(name, static_cast<std::int64_t>(values.size()));
    for (std::size_t n = 0; tensor && n < values.size(); ++n) {
      const auto at = static_cast<std::int64_t>(n);
      comparison_.element(name, {at, 0, 0, 0}, tensor->at(at), values[n], tolerance(name));
    }
  }

  /// Masks as examples print them: 1 for a hidden key, and what is added to the scores.
  void masks() {
    const bool wanted = source_.golden->stages.contains("hidden") || source_.golden->stages.contains("added");
    if (!wanted || p_.packed_sequences()) return;
    std::vector<double> hidden, added;
    std::size_t r = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        const Head head(p_, inputs_, b, h);
        for (std::int64_t i = 0; i < p_.query_length; ++i, ++r) {
          for (double value : hidden_keys(head, i, rows_[r])) hidden.push_back(value);
          for (double value : added_scores(head, i, rows_[r])) added.push_back(value);
        }
      }
    }
    list("hidden", hidden);
    list("added", added);
  }

  void row_statistics() {
    std::vector<double> weight_sums, score_sums, column_sums(static_cast<std::size_t>(p_.key_length)), raw, scaled;
    for (const Row& row : rows_) {
      double weight_sum = 0, score_sum = 0;
      for (std::size_t j = 0; j < row.raw.size(); ++j) {
        weight_sum += row.weights[j];
        score_sum += row.raw[j];
        column_sums[j] += row.raw[j];
        raw.push_back(row.raw[j] / p_.scale_value());
        scaled.push_back(row.raw[j]);
      }
      weight_sums.push_back(weight_sum);
      score_sums.push_back(score_sum);
    }
    list("row_sums", weight_sums);
    list("score_row_sums", score_sums);
    list("score_column_sums", column_sums);
    list("variance_before", {variance(raw)});
    list("variance_after", {variance(scaled)});
    if (!source_.golden->stages.contains("statistics")) return;
    std::vector<double> statistics;
    for (const ConstTensor* tensor : {&inputs_.q, &inputs_.k, &inputs_.v}) {
      std::vector<double> values;
      each_index(tensor->shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        values.push_back(load(tensor->data, tensor->dtype, tensor->offset(b, h, l, d)));
      });
      statistics.insert(statistics.end(),
                        {mean(values), population_variance(values), std::sqrt(population_variance(values))});
    }
    list("statistics", statistics);
  }

  /// X * W_Q and its kin against the q, k and v of the file.
  void projections() {
    const auto x = source_.golden->stages.find("X");
    if (x == source_.golden->stages.end()) return;
    for (const auto& [weight, tensor] :
         {std::pair{"W_Q", &inputs_.q}, std::pair{"W_K", &inputs_.k}, std::pair{"W_V", &inputs_.v}}) {
      const auto w = source_.golden->stages.find(weight);
      if (w == source_.golden->stages.end()) continue;
      const Matrix projected = project(matrix_of(x->second), matrix_of(w->second));
      for (std::int64_t i = 0; i < projected.rows; ++i) {
        for (std::int64_t c = 0; c < projected.columns; ++c) {
          const double held = load(tensor->data, tensor->dtype, tensor->offset(0, 0, i, c));
          comparison_.element(std::string("X*") + weight, {0, 0, i, c}, held, projected.at(i, c), tolerance(weight));
        }
      }
    }
  }

  static Matrix matrix_of(const FileTensor& tensor) {
    const std::size_t axes = tensor.shape.size();
    if (axes < 2) throw UserError("a projection needs a matrix, not " + tensor.shape_text());
    Matrix matrix{tensor.shape[axes - 2], tensor.shape[axes - 1], {}};
    for (std::int64_t n = 0; n < matrix.rows * matrix.columns; ++n) matrix.values.push_back(tensor.at(n));
    return matrix;
  }

  const Case& source_;
  const Problem& p_;
  TensorPlace queries_;
  const Inputs& inputs_;
  Comparison& comparison_;
  std::vector<Row> rows_;
  std::optional<Producer> producer_;
};

}  // namespace

Comparison GoldenCheck::compare_reference() const {
  Comparison comparison;
  ReferenceStages(source_, inputs_, comparison).compare();
  return comparison;
}

Comparison GoldenCheck::compare_backend(Backend& backend) const {
  Comparison comparison;
  const Golden& golden = *source_.golden;
  const auto run = [&](const Problem& p, const Inputs& inputs, GuardedOutputs& outputs) {
    walk_once(backend, p, inputs, outputs);
    std::vector<Producer> producers = {{backend.arithmetic(p), p.dtype}};
    if (golden.producer) producers.push_back({*golden.producer, p.dtype});
    return expect(p, inputs, producers, 2, kInfinity);
  };
  /// `values(r, c)` of the backend against a stage of the file; `bounds` picks the list of bounds.
  const auto compare = [&](const std::string& name, const Problem& p, const Expectation& e, std::int64_t columns,
                           bool follows_layout, const auto& bounds, const auto& value) {
    const auto found = golden.stages.find(name);
    if (found == golden.stages.end()) return;
    const FileTensor& tensor = found->second;
    expect_shape(source_, name, tensor, stored_rows(p) * columns);
    const TensorPlace queries = place_of(p, TensorId::q);
    for (std::size_t r = 0; r < e.rows.size(); ++r) {
      const auto [b, h, i] = e.rows[r];
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::size_t at = r * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c);
        const double held = tensor.at(file_index(p, queries, tensor, b, h, i, c, columns, follows_layout));
        double bound = tolerance_of(golden, name, held) + bounds(e.own)[at];
        for (const Bounds& list : e.bounds) bound += bounds(list)[at];
        comparison.element(name, {b, h, i, c}, value(b, h, i, c), held, bound);
      }
    }
  };
  const auto of_output = [](const Bounds& bounds) -> const std::vector<double>& { return bounds.out; };

  const Problem& p = source_.problem;
  if (refusal_of(backend, p)) return comparison;
  GuardedOutputs outputs(p);
  const Expectation e = run(p, inputs_, outputs);
  compare("output", p, e, p.value_dim, true, of_output,
          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) { return outputs.out(b, h, i, c); });
  for (std::size_t n = 0; n < kScoreStages.size(); ++n) {
    if (!p.wants(kScoreStages[n])) continue;
    compare(
        std::string(name_of(kScoreStages[n])), p, e, p.key_length, false,
        [n](const Bounds& bounds) -> const std::vector<double>& { return bounds.stages[n]; },
        [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
          return outputs.stage(kScoreStages[n], b, h, i, c);
        });
  }
  const bool through_identity = golden.stages.contains("weights") && !p.wants(Output::weights) && p.past == 0 &&
                                !p.packed_sequences() && !p.page_size;
  if (through_identity && p.key_length <= kMaxKeysForWeights && p.key_length > 0) {
    const IdentityValues identity(p);
    if (refusal_of(backend, identity.problem)) return comparison;
    const Inputs inputs = identity.inputs(inputs_);
    GuardedOutputs weights(identity.problem);
    const Expectation of_weights = run(identity.problem, inputs, weights);
    compare("weights", identity.problem, of_weights, p.key_length, false, of_output,
            [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) { return weights.out(b, h, i, c); });
  }
  return comparison;
}

}  // namespace attest

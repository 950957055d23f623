#include "harness/verdict/golden.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/verdict/file_bounds.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/row_stages.h"
#include "reference/call/tensor_place.h"
#include "reference/operators/operator.h"
#include "reference/softmax/attention.h"

namespace attest {
namespace {

/// Weights are compared through V = I up to this many keys: the detour costs Lk columns.
constexpr std::int64_t kMaxKeysForWeights = 512;

/// A problem whose output is its weights: V is the identity, one for each key head.
struct IdentityValues {
  Problem problem;
  TensorStorage v;

  explicit IdentityValues(const Problem& original) : problem(original) {
    problem.call.value_dim = original.call.key_length;
    problem.call.tensor(TensorId::v) = {};
    problem.call.tensor(TensorId::v).layout = Layout::bhld;
    problem.call.tensor(TensorId::out) = problem.call.tensor(TensorId::v);
    problem.call.outputs = {Output::o};
    v = TensorStorage(place_of(problem, TensorId::v), type_of(problem, TensorId::v));
    for (std::int64_t b = 0; b < problem.call.batch; ++b) {
      for (std::int64_t h = 0; h < problem.call.key_heads; ++h) {
        for (std::int64_t j = 0; j < problem.call.key_length; ++j) {
          for (std::int64_t c = 0; c < problem.call.key_length; ++c) v.set(b, h, j, c, j == c ? 1 : 0);
        }
      }
    }
  }

  Inputs inputs(Inputs from) const {
    from.set(TensorId::v, v.view());
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
std::int64_t stored_rows(const Call& p) {
  std::int64_t rows = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) rows += p.query_heads * p.stored_queries(b);
  return rows;
}

/// File index of element (b, h, i, c): positions come before heads in blhd and bld files.
std::int64_t file_index(const Call& p, const TensorPlace& queries, const FileTensor& tensor, std::int64_t b,
                        std::int64_t h, std::int64_t i, std::int64_t c, std::int64_t columns, bool follows_layout) {
  if (p.packed_sequences()) {
    return ((queries.starts[static_cast<std::size_t>(b)] + i) * p.query_heads + h) * columns + c;
  }
  const bool heads_first = !follows_layout || (p.layout == Layout::bhld && tensor.shape.size() == 4);
  return heads_first ? ((b * p.query_heads + h) * p.query_length + i) * columns + c
                     : ((b * p.query_length + i) * p.query_heads + h) * columns + c;
}

/// The gradients that a file holds, as results of a call that asks for all of them.
Problem asking_for_gradients(const Case& source) {
  Problem asked = source.problem;
  asked.call.outputs.clear();
  for (const TensorRow& row : tensor_rows()) {
    if (row.result && is_gradient(*row.result) && source.golden->stages.contains(std::string(row.name)))
      asked.call.outputs.push_back(*row.result);
  }
  return asked;
}

/// Calls element(index, number in an Expectation, number in the file) for each element of a gradient: in the layout of
/// its input, keys numbered as a whole, cached ones first; dmask and dsinks one after the other.
template <class Element>
void each_gradient_element(const Problem& p, TensorId id, const Expectation& e, const FileTensor& tensor,
                           const std::string& file, const Element& element) {
  const TensorPlace place = place_of(p, id);
  const Index4 n = seen_shape(p, id);
  const bool has_layout = index_space(id) != IndexSpace::other;
  const bool is_packed = has_layout && p.call.packed_sequences();
  const bool heads_first = !has_layout || (p.call.layout == Layout::bhld && tensor.shape.size() != 3);
  std::vector<Index4> list;  // in the order of an Expectation
  if (index_space(id) == IndexSpace::query_rows) {
    for (const RowIndex& row : e.rows) {
      for (std::int64_t d = 0; d < n[3]; ++d) list.push_back({row.b, row.h, row.i, d});
    }
  } else {
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      list.push_back({b, h, l, d});
    });
  }
  const auto is_stored = [&](const Index4& at) { return !is_packed || at[2] < place.rows(at[0]); };
  if (const auto size = std::ranges::count_if(list, is_stored); tensor.size() != size) {
    throw UserError(fmt::format("{}: tensor \"{}\" {} has {} elements, the case gives {}", file, name_of(id),
                                tensor.shape_text(), tensor.size(), size));
  }
  for (std::size_t number = 0; number < list.size(); ++number) {
    const auto& [b, h, l, d] = list[number];
    if (!is_stored(list[number])) continue;
    std::int64_t row = heads_first ? (b * n[1] + h) * n[2] + l : (b * n[2] + l) * n[1] + h;
    if (is_packed) row = (place.starts[static_cast<std::size_t>(b)] + l) * n[1] + h;
    element(list[number], number, row * n[3] + d);
  }
}

/// What the file's metadata allow around `value` of a stage.
double tolerance_of(const Golden& golden, const std::string& stage, double value) {
  const auto own = golden.stage_tolerances.find(stage);
  const double absolute = own == golden.stage_tolerances.end() ? golden.tolerance.value_or(0) : own->second;
  return absolute + (std::isfinite(value) ? golden.relative * std::fabs(value) : 0);
}

/// In the order b, h, i; of an operator without scores, the output and lse alone.
std::vector<Row> rows_of(const Problem& p, const Inputs& inputs) {
  if (p.call.has_scores()) return attention(p, inputs).rows;
  std::vector<Row> rows;
  for (ResultValues& row : reference_rows(p, inputs)) {
    Row& one = rows.emplace_back();
    one.output = std::move(row.of(TensorId::out));
    if (p.call.has_lse()) one.lse = row.of(TensorId::lse)[0];
  }
  return rows;
}

class ReferenceStages {
 public:
  ReferenceStages(const Case& source, const Inputs& inputs, Comparison& comparison)
      : source_(source),
        p_(source.problem),
        queries_(place_of(p_, TensorId::q)),
        inputs_(inputs),
        comparison_(comparison),
        rows_(rows_of(p_, inputs)),
        bounds_(source, inputs) {}

  void compare() {
    each_row("raw", p_.call.key_length, [](const Row& row, std::size_t j) { return row.raw[j]; });
    each_row("capped", p_.call.key_length, [](const Row& row, std::size_t j) { return row.capped[j]; });
    each_row("biased", p_.call.key_length, [](const Row& row, std::size_t j) { return masked_scores(row)[j]; });
    present();
    each_row("scores", p_.call.key_length, [](const Row& row, std::size_t j) { return row.raw[j]; });
    each_row("raw_scores", p_.call.key_length,
             [&](const Row& row, std::size_t j) { return row.raw[j] / p_.call.scale_value(); });
    // Printed masked scores were rounded to f32 before they were printed.
    each_row("masked_scores", p_.call.key_length, [](const Row& row, std::size_t j) {
      return static_cast<double>(static_cast<float>(masked_scores(row)[j]));
    });
    masks();
    each_row("weights", p_.call.key_length, [](const Row& row, std::size_t j) { return row.weights[j]; });
    each_row(
        "output", p_.call.value_dim, [](const Row& row, std::size_t c) { return row.output[c]; }, true);
    each_row("lse", 1, [](const Row& row, std::size_t) { return row.lse; });
    row_statistics();
    input_statistics();
    projections();
    gradients();
  }

 private:
  const FileTensor* stage(const std::string& name, std::int64_t size) const {
    const auto found = source_.golden->stages.find(name);
    if (found == source_.golden->stages.end()) return nullptr;
    expect_shape(source_, name, found->second, size);
    return &found->second;
  }
  bool holds(const std::string& name) const { return source_.golden->stages.contains(name); }

  double tolerance(const std::string& stage, double value = 0) const {
    return tolerance_of(*source_.golden, stage, value);
  }

  /// A file in 16 bits holds rounded results. The reference's are rounded alike before they are compared, unless the
  /// bound of a stated producer has that rounding in it.
  double as_stored(double value, const FileTensor& tensor) const {
    const DType type =
        has_mixed_types(p_) || p_.call.wants_gradients() ? tensor.stored_type().value_or(p_.call.dtype) : p_.call.dtype;
    if (size_of(type) > 2 || source_.golden->producer) return value;
    std::uint64_t bits = 0;
    store(&bits, type, 0, value);
    return load(&bits, type, 0);
  }

  /// Copies exactly; what was computed, within the file's tolerance and its producer's bound.
  void present() {
    for (const TensorId output : outputs_of(p_)) {
      if (index_space(output) == IndexSpace::query_rows || is_gradient(*row_of(output).result)) continue;
      const Index4 n = seen_shape(p_, output);
      const std::string name(row_of(output).name);
      const FileTensor* tensor = stage(name, n[0] * n[1] * n[2] * n[3]);
      if (!tensor) continue;
      const WholeResults expected =
          operator_of(p_).whole(p_, inputs_, {output}, {{reference_arithmetic(), DType::f64}}, {});
      const std::vector<double> bounds = bounds_.of_present(output);
      std::size_t at = 0;
      each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        const double held = tensor->at(static_cast<std::int64_t>(at));
        const double allowed = is_copied(output) ? 0 : tolerance(name, held) + bounds[at];
        comparison_.element(name, {b, h, l, d}, held, as_stored(expected.values.of(output)[at], *tensor), allowed);
        ++at;
      });
    }
  }

  void gradients() {
    const Problem asked = asking_for_gradients(source_);
    if (asked.call.outputs.empty()) return;
    const std::optional<Arithmetic>& producer = source_.golden->producer;
    const std::vector<Producer> producers = producer ? std::vector<Producer>{{*producer, {}}} : std::vector<Producer>();
    const Expectation e = expect(asked, inputs_, producers, 2, kInfinity);
    for (const TensorId id : outputs_of(asked)) {
      if (!is_gradient(*row_of(id).result)) continue;
      const std::string name(name_of(id));
      const FileTensor& tensor = source_.golden->stages.at(name);
      each_gradient_element(asked, id, e, tensor, source_.label, [&](const Index4& at, std::size_t n, std::int64_t in) {
        const double held = tensor.at(in);
        const double bound = producer ? e.own.of(id)[n] + e.bounds.front().of(id)[n] : 0;
        comparison_.element(name, at, held, as_stored(e.of(id)[n], tensor), tolerance(name, held) + bound);
      });
    }
  }

  template <class Get>
  void each_row(const std::string& name, std::int64_t columns, const Get& get, bool follows_layout = false) {
    const FileTensor* tensor = stage(name, stored_rows(p_) * columns);
    if (!tensor) return;
    const std::vector<double> bounds = bounds_.of_rows(name);
    std::size_t r = 0, at = 0;
    for (std::int64_t b = 0; b < p_.call.batch; ++b) {
      for (std::int64_t h = 0; h < p_.call.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.call.stored_queries(b); ++i, ++r) {
          for (std::int64_t c = 0; c < columns; ++c, ++at) {
            const double held = tensor->at(file_index(p_, queries_, *tensor, b, h, i, c, columns, follows_layout));
            comparison_.element(name, {b, h, i, c}, held,
                                as_stored(get(rows_[r], static_cast<std::size_t>(c)), *tensor),
                                tolerance(name, held) + (bounds.empty() ? 0 : bounds[at]));
          }
        }
      }
    }
  }

  /// A list of numbers, each with what its producer may have got wrong.
  struct Computed {
    std::vector<double> values, bounds;
    void add(double value, double bound) {
      values.push_back(value);
      bounds.push_back(bound);
    }
  };

  void list(const std::string& name, const Computed& computed) {
    const FileTensor* tensor = stage(name, static_cast<std::int64_t>(computed.values.size()));
    for (std::size_t n = 0; tensor && n < computed.values.size(); ++n) {
      const auto at = static_cast<std::int64_t>(n);
      comparison_.element(name, {at, 0, 0, 0}, tensor->at(at), computed.values[n],
                          tolerance(name) + computed.bounds[n]);
    }
  }

  /// Masks as examples print them: 1 for a hidden key, and what is added to the scores.
  void masks() {
    const bool wanted = holds("hidden") || holds("added");
    if (!wanted || p_.call.packed_sequences()) return;
    Computed hidden, added;
    for (const Row& row : rows_) {
      for (double value : hidden_keys(row)) hidden.add(value, 0);
      const std::vector<double> of_keys = added_scores(row);
      for (std::size_t j = 0; j < of_keys.size(); ++j) added.add(of_keys[j], added_bound(row, j));
    }
    list("hidden", hidden);
    list("added", added);
  }

  /// A mask is a copy; a slope times a distance rounds twice, and adding both once.
  double added_bound(const Row& row, std::size_t j) const {
    if (!row.seen[j]) return 0;
    const ScoreBias bias = row.bias(j);
    if (bias.alibi == 0 || !std::isfinite(bias.additive)) return 0;
    const std::vector<double> parts = {bias.additive, bias.alibi}, errors = {0, bounds_.of_sum({{bias.alibi, 0}})};
    return bounds_.of_sum(parts, errors);
  }

  void row_statistics() {
    const bool wanted = holds("row_sums") || holds("score_row_sums") || holds("score_column_sums") ||
                        holds("variance_before") || holds("variance_after");
    if (!wanted) return;
    const auto keys = static_cast<std::size_t>(p_.call.key_length);
    const std::vector<double> of_scores = bounds_.of_rows("raw"), of_weights = bounds_.of_rows("weights");
    const auto part = [](const std::vector<double>& bounds, std::size_t first, std::size_t count) {
      return bounds.empty() ? std::span<const double>() : std::span(bounds).subspan(first, count);
    };
    Computed weight_sums, score_sums, column_sums;
    std::vector<double> scaled;
    std::vector<std::vector<double>> columns(keys), column_bounds(keys);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const Row& row = rows_[r];
      weight_sums.add(sum(row.weights), bounds_.of_sum(row.weights, part(of_weights, r * keys, keys)));
      score_sums.add(sum(row.raw), bounds_.of_sum(row.raw, part(of_scores, r * keys, keys)));
      scaled.insert(scaled.end(), row.raw.begin(), row.raw.end());
      for (std::size_t j = 0; j < keys; ++j) {
        columns[j].push_back(row.raw[j]);
        if (!of_scores.empty()) column_bounds[j].push_back(of_scores[r * keys + j]);
      }
    }
    for (std::size_t j = 0; j < keys; ++j) {
      column_sums.add(sum(columns[j]), bounds_.of_sum(columns[j], column_bounds[j]));
    }
    std::vector<double> raw = scaled;
    for (double& value : raw) value /= p_.call.scale_value();
    const double count = static_cast<double>(scaled.size()) - 1;
    list("row_sums", weight_sums);
    list("score_row_sums", score_sums);
    list("score_column_sums", column_sums);
    list("variance_before", {{variance(raw)}, {bounds_.of_variance(raw, count, bounds_.of_rows("raw_scores"))}});
    list("variance_after", {{variance(scaled)}, {bounds_.of_variance(scaled, count, of_scores)}});
  }

  static double sum(const std::vector<double>& values) {
    double total = 0;
    for (double value : values) total += value;
    return total;
  }

  void input_statistics() {
    if (!holds("statistics")) return;
    Computed statistics;
    for (const ConstTensor* tensor : {&inputs_.q(), &inputs_.k(), &inputs_.v()}) {
      std::vector<double> values;
      each_index(tensor->shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        values.push_back(load(tensor->data, tensor->dtype, tensor->offset(b, h, l, d)));
      });
      const double count = static_cast<double>(values.size());
      statistics.add(mean(values), bounds_.of_mean(values));
      statistics.add(population_variance(values), bounds_.of_variance(values, count));
      statistics.add(std::sqrt(population_variance(values)), bounds_.of_deviation(values));
    }
    list("statistics", statistics);
  }

  /// X * W_Q and its kin against the q, k and v of the file.
  void projections() {
    const auto x = source_.golden->stages.find("X");
    if (x == source_.golden->stages.end()) return;
    for (const auto& [weight, tensor] :
         {std::pair{"W_Q", &inputs_.q()}, std::pair{"W_K", &inputs_.k()}, std::pair{"W_V", &inputs_.v()}}) {
      const auto w = source_.golden->stages.find(weight);
      if (w == source_.golden->stages.end()) continue;
      const auto [rows, inner] = matrix_shape(x->second);
      const auto [inputs, columns] = matrix_shape(w->second);
      if (inner != inputs || rows != tensor->shape[2] || columns != tensor->shape[3]) {
        throw UserError(fmt::format("{}: X {} * {} {} doesn't give its tensor", source_.label, x->second.shape_text(),
                                    weight, w->second.shape_text()));
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t c = 0; c < columns; ++c) {
          std::vector<double> products;
          for (std::int64_t k = 0; k < inner; ++k)
            products.push_back(x->second.at(i * inner + k) * w->second.at(k * columns + c));
          const double expected = sum(products);
          products.push_back(0);  // each product rounds once beside the additions
          const double held = load(tensor->data, tensor->dtype, tensor->offset(0, 0, i, c));
          comparison_.element(std::string("X*") + weight, {0, 0, i, c}, held, expected,
                              tolerance(weight) + bounds_.of_sum(products));
        }
      }
    }
  }

  /// Rows and columns of the last two axes.
  static std::array<std::int64_t, 2> matrix_shape(const FileTensor& tensor) {
    const std::size_t axes = tensor.shape.size();
    if (axes < 2) throw UserError("a projection needs a matrix, not " + tensor.shape_text());
    return {tensor.shape[axes - 2], tensor.shape[axes - 1]};
  }

  const Case& source_;
  const Problem& p_;
  TensorPlace queries_;
  const Inputs& inputs_;
  Comparison& comparison_;
  std::vector<Row> rows_;
  FileBounds bounds_;
};

}  // namespace

Comparison GoldenCheck::compare_reference() const {
  Comparison comparison;
  ReferenceStages(source_, inputs_, comparison).compare();
  return comparison;
}

Comparison GoldenCheck::compare_backend(Backend& backend, const Answers& answers) const {
  Comparison comparison;
  const Golden& golden = *source_.golden;
  const auto run = [&](const Problem& p, const Answers& stated, const Inputs& inputs, GuardedOutputs& outputs) {
    walk_once(backend, p, inputs, outputs);
    std::vector<Producer> producers = {{stated.arithmetic, {}}};
    if (golden.producer) producers.push_back({*golden.producer, {}});
    return expect(p, inputs, producers, 2, kInfinity);
  };
  /// `value(b, h, i, c)` of the backend against what the file calls `name`; `result` is what has its bounds.
  const auto compare = [&](const std::string& name, const Call& p, const Expectation& e, TensorId result,
                           bool follows_layout, const auto& value) {
    const std::int64_t columns = seen_shape(p, result)[3];
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
        double bound = tolerance_of(golden, name, held) + e.own.of(result)[at];
        for (const Bounds& list : e.bounds) bound += list.of(result)[at];
        comparison.element(name, {b, h, i, c}, value(b, h, i, c), held, bound);
      }
    }
  };
  const Problem& p = source_.problem;
  GuardedOutputs outputs(p);
  const Expectation e = run(p, answers, inputs_, outputs);
  if (has_tensor(p, TensorId::out)) {
    compare("output", p, e, TensorId::out, true,
            [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) { return outputs.out(b, h, i, c); });
  }
  for (const TensorId id : outputs_of(p)) {
    const std::string name(name_of(id));
    if (!is_gradient(*row_of(id).result) || !golden.stages.contains(name)) continue;
    const FileTensor& tensor = golden.stages.at(name);
    each_gradient_element(p, id, e, tensor, source_.label, [&](const Index4& at, std::size_t n, std::int64_t in) {
      const double held = tensor.at(in);
      double bound = tolerance_of(golden, name, held) + e.own.of(id)[n];
      for (const Bounds& list : e.bounds) bound += list.of(id)[n];
      comparison.element(name, at, outputs.at(id, at[0], at[1], at[2], at[3]), held, bound);
    });
  }
  for (const TensorId stage : kScoreStages) {
    if (!has_tensor(p, stage)) continue;
    compare(
        std::string(name_of(stage)), p, e, stage, false,
        [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) { return outputs.at(stage, b, h, i, c); });
  }
  const bool through_identity = golden.stages.contains("weights") && !p.call.wants(Output::weights) &&
                                p.call.pass == Pass::forward && p.call.past == 0 && !p.call.packed_sequences() &&
                                !p.call.page_size;
  if (through_identity && p.call.key_length <= kMaxKeysForWeights && p.call.key_length > 0) {
    const IdentityValues identity(p);
    const Answers of_identity = ask(backend, identity.problem);
    if (of_identity.refusal) return comparison;
    const Inputs inputs = identity.inputs(inputs_);
    GuardedOutputs weights(identity.problem);
    const Expectation of_weights = run(identity.problem, of_identity, inputs, weights);
    compare("weights", identity.problem, of_weights, TensorId::out, false,
            [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) { return weights.out(b, h, i, c); });
  }
  return comparison;
}

}  // namespace attest

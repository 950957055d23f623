#include "harness/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/statistics.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/trace/gradient_stages.h"
#include "harness/verdict/row_stages.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr std::int64_t kMaxTokens = 128;  ///< a trace is for reading

void check_readable(const Case& source) {
  const Call& p = source.problem.call;
  if (p.batch < 1 || p.query_heads < 1 || p.query_length < 1)
    throw UserError(source.label + ": there is nothing to trace");
  if (!p.has_scores()) throw UserError(source.label + ": a trace shows scores, and this operator has none");
  if (p.query_length > kMaxTokens || p.key_length > kMaxTokens) {
    throw UserError(fmt::format("{}: {} x {} is too large to read; up to {} tokens are traced", source.label,
                                p.query_length, p.key_length, kMaxTokens));
  }
}

/// Numbers from 0 up to `count`, or the one that was chosen.
std::vector<std::int64_t> chosen(const std::string& option, const std::optional<std::int64_t>& one,
                                 std::int64_t count) {
  if (!one) {
    std::vector<std::int64_t> all;
    for (std::int64_t n = 0; n < count; ++n) all.push_back(n);
    return all;
  }
  if (*one < 0 || *one >= count)
    throw UserError(fmt::format("--{} {}: this case has 0 to {}", option, *one, count - 1));
  return {*one};
}

class Tracer {
 public:
  Tracer(const Case& source, const TraceSettings& settings) : source_(source), p_(source.problem), settings_(settings) {
    if (settings.causal) p_.call.causal = true;
    trace_.label = source.from_file ? source.label + (settings.causal ? " --causal" : "") : print_case(p_);
    if (source.golden) trace_.about = source.golden->about;
    own_inputs_ = source.inputs ? *source.inputs : make_inputs(p_);
    inputs_ = own_inputs_.views();
    names();
  }

  Trace run() {
    const double scale = p_.call.scale_value();
    trace_.scaling = p_.call.scale
                         ? fmt::format("scale {:.6g}", scale)
                         : fmt::format("scale {:.6g} = 1 / sqrt({}), where sqrt({}) = {:.6g}", scale, p_.call.key_dim,
                                       p_.call.key_dim, std::sqrt(static_cast<double>(p_.call.key_dim)));
    projections();
    shapes();
    for (std::int64_t b : chosen("batch", settings_.batch, p_.call.batch)) {
      for (std::int64_t h : chosen("head", settings_.head, p_.call.query_heads)) trace_head(b, h);
    }
    return std::move(trace_);
  }

 private:
  void names() {
    const auto queries = static_cast<std::size_t>(p_.call.query_length),
               keys = static_cast<std::size_t>(p_.call.key_length);
    const std::vector<std::string> none, &tokens = source_.golden ? source_.golden->tokens : none;
    trace_.queries = tokens.size() == queries ? tokens : numbered("query", queries);
    trace_.keys = tokens.size() == keys ? tokens : numbered("key", keys);
  }

  void shapes() {
    Stage s{"shapes", "shapes", {}, {"batches", "heads", "rows", "columns"}, {}, true};
    const auto add = [&](const std::string& name, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
      s.rows.push_back(name);
      s.values.push_back({static_cast<double>(p_.call.batch), static_cast<double>(heads), static_cast<double>(rows),
                          static_cast<double>(columns)});
    };
    if (model_ > 0) add("X", 1, p_.call.query_length, model_);
    add("q", p_.call.query_heads, p_.call.query_length, p_.call.key_dim);
    add("k", p_.call.key_heads, p_.call.key_length, p_.call.key_dim);
    add("v", p_.call.key_heads, p_.call.key_length, p_.call.value_dim);
    add("scores", p_.call.query_heads, p_.call.query_length, p_.call.key_length);
    add("weights", p_.call.query_heads, p_.call.query_length, p_.call.key_length);
    add("output", p_.call.query_heads, p_.call.query_length, p_.call.value_dim);
    if (p_.call.wants_gradients()) {
      add("dq", p_.call.query_heads, p_.call.query_length, p_.call.key_dim);
      add("dk", p_.call.key_heads, p_.call.key_length, p_.call.key_dim);
      add("dv", p_.call.key_heads, p_.call.key_length, p_.call.value_dim);
    }
    trace_.stages.insert(trace_.stages.begin(), std::move(s));
  }

  /// X and W_Q, W_K, W_V of the file.
  void projections() {
    if (!source_.golden) return;
    const auto& stages = source_.golden->stages;
    if (const auto x = stages.find("X"); x != stages.end()) {
      const std::vector<Matrix> all = matrices_of(x->second);
      const bool fits = static_cast<std::int64_t>(all.size()) == p_.call.batch;
      for (std::size_t b = 0; fits && b < all.size(); ++b) {
        if (static_cast<std::int64_t>(all[b].size()) != p_.call.query_length) continue;
        model_ = x->second.shape.back();
        const std::string name = p_.call.batch > 1 ? fmt::format("X_{}", b) : "X";
        const std::string of_batch = p_.call.batch > 1 ? fmt::format(" of batch {}", b) : "";
        trace_.stages.push_back({name, "embeddings X" + of_batch, trace_.queries, {}, all[b]});
      }
    }
    Stage parameters{"parameters", "parameters of the projections", {}, {"inputs", "outputs", "numbers"}, {}, true};
    std::vector<Stage> matrices;
    for (const std::string name : {"W_Q", "W_K", "W_V"}) {
      const auto w = stages.find(name);
      if (w == stages.end() || w->second.shape.size() != 2) continue;
      parameters.rows.push_back(name);
      parameters.values.push_back({static_cast<double>(w->second.shape[0]), static_cast<double>(w->second.shape[1]),
                                   static_cast<double>(w->second.size())});
      const std::string to(1, static_cast<char>(std::tolower(name.back())));
      const Matrix matrix = matrices_of(w->second).front();
      matrices.push_back({name,
                          fmt::format("projection {}; {} = X * {}", name, to, name),
                          numbered("row", matrix.size()),
                          {},
                          matrix});
    }
    if (parameters.rows.empty()) return;
    trace_.stages.push_back(std::move(parameters));
    for (Stage& stage : matrices) trace_.stages.push_back(std::move(stage));
  }

  using Matrix = std::vector<std::vector<double>>;

  /// The last two axes are rows and columns; the others count matrices.
  static std::vector<Matrix> matrices_of(const FileTensor& tensor) {
    std::vector<Matrix> result;
    const std::size_t axes = tensor.shape.size();
    if (axes < 2) return result;
    const std::int64_t rows = tensor.shape[axes - 2], columns = tensor.shape[axes - 1];
    for (std::int64_t n = 0; n < tensor.size(); ++n) {
      if (n % (rows * columns) == 0) result.emplace_back();
      if (n % columns == 0) result.back().emplace_back();
      result.back().back().push_back(tensor.at(n));
    }
    return result;
  }

  /// Rows of one head as the problem `p` says, and which keys have no part in them.
  struct HeadRows {
    std::vector<Row> rows;
    std::vector<std::vector<double>> hidden, added, weights;
  };
  HeadRows attend(const Problem& p, std::int64_t b, std::int64_t h) const {
    const Head head(p, inputs_, b, h);
    HeadRows result;
    const std::int64_t count = p.call.packed_sequences() ? p.call.query_count(b) : p.call.query_length;
    for (std::int64_t i = 0; i < count; ++i) {
      Row& row = result.rows.emplace_back();
      head.attend(i, row);
      result.hidden.push_back(hidden_keys(row));
      result.added.push_back(added_scores(row));
      result.weights.push_back(row.weights);
    }
    return result;
  }

  void trace_head(std::int64_t b, std::int64_t h) {
    const HeadRows of_head = attend(p_, b, h);
    const std::vector<Row>& rows = of_head.rows;
    HeadTrace& traced = trace_.heads.emplace_back();
    traced.batch = b;
    traced.head = h;
    std::vector<std::string> queries = trace_.queries;
    queries.resize(rows.size());

    const auto matrix = [&](const std::string& name, const std::string& title, const auto& get) -> Stage& {
      Stage& s = traced.stages.emplace_back(Stage{name, title, queries, trace_.keys, {}});
      for (std::size_t i = 0; i < rows.size(); ++i) s.values.push_back(get(i));
      return s;
    };
    const Head head(p_, inputs_, b, h);
    operands(head, queries, traced);
    const double scale = p_.call.scale_value();
    std::vector<double> raw, scaled;
    const auto unscaled = [&](std::size_t i) {
      std::vector<double> row = rows[i].raw;
      for (double& score : row) score = scale == 0 ? 0 : score / scale;
      return row;
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (double score : unscaled(i)) raw.push_back(score);
      scaled.insert(scaled.end(), rows[i].raw.begin(), rows[i].raw.end());
    }
    matrix("raw_scores", "scores = q * k^T", unscaled);
    Stage& scores = matrix("scaled_scores", fmt::format("scaled scores = scores * {:.6g}", scale),
                           [&](std::size_t i) { return rows[i].raw; });
    scores.row_sums = scores.column_sums = true;
    traced.stages.push_back({"score_statistics",
                             "statistics of the scores",
                             {"scores", "scaled scores"},
                             {"mean", "variance over n", "variance over n - 1"},
                             {{mean(raw), population_variance(raw), variance(raw)},
                              {mean(scaled), population_variance(scaled), variance(scaled)}}});
    if (p_.call.softcap) matrix("capped_scores", "capped scores", [&](std::size_t i) { return rows[i].capped; });
    masks(of_head, queries, matrix, traced);
    Stage& lse = matrix("lse", "logsumexp: log of the sum of exp(score) over a row",
                        [&](std::size_t i) { return std::vector<double>{rows[i].lse}; });
    lse.columns.clear();
    matrix("weights", "weights = exp(score - logsumexp), the softmax of each row", [&](std::size_t i) {
      return rows[i].weights;
    }).row_sums = true;
    if (p_.call.sinks) {
      traced.stages.push_back({"sink",
                               "sink: a logit without a key, whose weight is what a row lacks to 1",
                               {"sink"},
                               {},
                               {{rows.empty() ? -kInfinity : rows.front().sink}}});
    }
    // A row that sees nothing has no factors.
    if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.factors.empty(); }))
      dropout(rows, matrix);
    matrix("output", "output = weights * v", [&](std::size_t i) { return rows[i].output; }).columns.clear();
    if (p_.call.wants_gradients()) {
      for (Stage& stage : gradient_stages(head, inputs_, b, h, rows, queries, trace_.keys))
        traced.stages.push_back(std::move(stage));
    }
    heat_maps(b, h, queries);
  }

  void operands(const Head& head, const std::vector<std::string>& queries, HeadTrace& traced) const {
    Stage q{"q", "queries q", queries, {}, {}}, k{"k", "keys k", trace_.keys, {}, {}},
        v{"v", "values v", trace_.keys, {}, {}};
    for (std::size_t i = 0; i < queries.size(); ++i) q.values.push_back(head.query_row(static_cast<std::int64_t>(i)));
    for (std::int64_t j = 0; j < p_.call.key_length; ++j) {
      k.values.emplace_back(head.key_row(j), head.key_row(j) + p_.call.key_dim);
      v.values.emplace_back(head.value_row(j), head.value_row(j) + p_.call.value_dim);
    }
    Stage statistics{"statistics", "statistics of q, k and v", {}, {"mean", "variance", "deviation"}, {}};
    for (const Stage* stage : {&q, &k, &v}) {
      std::vector<double> all;
      for (const auto& row : stage->values) all.insert(all.end(), row.begin(), row.end());
      const double over_n = population_variance(all);
      statistics.rows.push_back(stage->name);
      statistics.values.push_back({mean(all), over_n, std::sqrt(over_n)});
    }
    for (Stage* stage : {&q, &k, &v, &statistics}) traced.stages.push_back(std::move(*stage));
  }

  void masks(const HeadRows& of_head, const std::vector<std::string>& queries, const auto& matrix,
             HeadTrace& traced) const {
    const auto any = [](const std::vector<std::vector<double>>& rows) {
      return std::any_of(rows.begin(), rows.end(), [](const std::vector<double>& row) {
        return std::any_of(row.begin(), row.end(), [](double value) { return value != 0; });
      });
    };
    if (!any(of_head.hidden) && !any(of_head.added)) return;
    matrix("hidden", "mask: 1 where a query does not see a key", [&](std::size_t i) {
      return of_head.hidden[i];
    }).whole = true;
    Stage seen{"seen_keys", "positions that each query sees", queries, {}, {}, true};
    for (const std::vector<double>& hidden : of_head.hidden) {
      std::vector<double>& list = seen.values.emplace_back();
      for (std::size_t j = 0; j < hidden.size(); ++j) {
        if (hidden[j] == 0) list.push_back(static_cast<double>(j));
      }
    }
    traced.stages.push_back(std::move(seen));
    matrix("added", "mask: what is added to the scores", [&](std::size_t i) { return of_head.added[i]; });
    matrix("masked_scores", "masked scores", [&](std::size_t i) { return masked_scores(of_head.rows[i]); });
  }

  void dropout(const std::vector<Row>& rows, const auto& matrix) const {
    matrix("dropout", fmt::format("dropout: 0 where a weight is dropped, else 1 / (1 - {:.6g})", p_.call.dropout),
           [&](std::size_t i) { return rows[i].factors; });
    matrix("dropped_weights", "weights after dropout; they are what the output sums with", [&](std::size_t i) {
      std::vector<double> row = rows[i].weights;
      for (std::size_t j = 0; j < rows[i].factors.size(); ++j) row[j] *= rows[i].factors[j];
      return row;
    }).row_sums = true;
  }

  void heat_maps(std::int64_t b, std::int64_t h, const std::vector<std::string>& queries) {
    Problem without = p_, with = p_;
    without.call.causal = false;
    with.call.causal = true;
    const HeadRows first = attend(without, b, h), second = attend(with, b, h);
    const std::string of = p_.call.batch * p_.call.query_heads > 1 ? fmt::format(", batch {}, head {}", b, h) : "";
    const auto map = [&](const std::string& title, const HeadRows& rows) {
      return HeatMap{title + of, queries, trace_.keys, rows.weights, rows.hidden};
    };
    if (first.weights == second.weights && first.hidden == second.hidden)
      trace_.heat_maps.push_back({map("Attention weights", first)});
    else
      trace_.heat_maps.push_back({map("Without causal mask", first), map("With causal mask", second)});
  }

  const Case& source_;
  Problem p_;
  const TraceSettings& settings_;
  CaseInputs own_inputs_;
  Inputs inputs_;
  std::int64_t model_ = 0;
  Trace trace_;
};

}  // namespace

Trace trace_case(const Case& source, const TraceSettings& settings) {
  check_readable(source);
  return Tracer(source, settings).run();
}

void print_trace(const Trace& trace, int digits) {
  fmt::print("{}\n", printable_line(trace.label));
  if (!trace.about.empty()) fmt::print("{}\n", printable(trace.about));
  fmt::print("{}\n", trace.scaling);
  for (const Stage& stage : trace.stages) print_stage(stage, digits);
  if (trace.heads.size() > 1) fmt::print("\n{} heads follow; --batch and --head choose one\n", trace.heads.size());
  for (const HeadTrace& head : trace.heads) {
    if (trace.heads.size() > 1) fmt::print("\n=== batch {}, head {}\n", head.batch, head.head);
    for (const Stage& stage : head.stages) print_stage(stage, digits);
  }
}

std::string trace_json(const Trace& trace) {
  nlohmann::ordered_json json;
  json["case"] = trace.label;
  if (!trace.about.empty()) json["about"] = trace.about;
  json["scaling"] = trace.scaling;
  json["queries"] = trace.queries;
  json["keys"] = trace.keys;
  for (const Stage& stage : trace.stages) json["stages"][stage.name] = stage_json(stage);
  json["heads"] = nlohmann::json::array();
  for (const HeadTrace& head : trace.heads) {
    nlohmann::ordered_json one;
    one["batch"] = head.batch;
    one["head"] = head.head;
    for (const Stage& stage : head.stages) one["stages"][stage.name] = stage_json(stage);
    json["heads"].push_back(one);
  }
  return json.dump(1) + "\n";
}

}  // namespace attest

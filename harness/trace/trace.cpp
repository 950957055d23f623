#include "harness/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/user_error.h"
#include "reference/case_line.h"

namespace attest {
namespace {

constexpr std::int64_t kMostTokens = 128;  ///< a trace is for reading
constexpr std::size_t kShownColumns = 12;

double variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0, sum = 0;
  for (double v : values) mean += v / static_cast<double>(values.size());
  for (double v : values) sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(values.size() - 1);
}

std::vector<Row> trace_rows(const Problem& p, const Inputs& inputs) {
  const Head head(p, inputs, 0, 0);
  std::vector<Row> rows(static_cast<std::size_t>(p.query_length));
  for (std::size_t i = 0; i < rows.size(); ++i) head.attend(static_cast<std::int64_t>(i), rows[i]);
  return rows;
}

template <class Get>
void print_matrix(const std::string& title, const std::vector<std::string>& names, std::size_t columns,
                  const Get& get) {
  fmt::print("\n{}  [{} x {}]\n", title, names.size(), columns);
  for (std::size_t i = 0; i < names.size(); ++i) {
    fmt::print("  {:<10}", names[i]);
    for (std::size_t j = 0; j < std::min(columns, kShownColumns); ++j) {
      const double value = get(i, j);
      if (value == -kInfinity)
        fmt::print(" {:>9}", "-inf");
      else
        fmt::print(" {:>9.4f}", value);
    }
    fmt::print("{}\n", columns > kShownColumns ? "  ..." : "");
  }
}

void print_tensor(const std::string& title, const ConstTensor& t, const std::vector<std::string>& names) {
  print_matrix(title, names, static_cast<std::size_t>(t.shape[3]), [&](std::size_t i, std::size_t d) {
    return load(t.data, t.dtype,
                static_cast<std::int64_t>(i) * t.strides[2] + static_cast<std::int64_t>(d) * t.strides[3]);
  });
}

void print_golden_matrix(const Trace& trace, const std::string& name, const std::string& title) {
  const auto found = trace.source.golden->stages.find(name);
  if (found == trace.source.golden->stages.end() || found->second.shape.size() < 2) return;
  const FileTensor& t = found->second;
  const auto rows = static_cast<std::size_t>(t.shape[t.shape.size() - 2]),
             columns = static_cast<std::size_t>(t.shape.back());
  std::vector<std::string> names = trace.tokens;
  if (names.size() != rows) {
    names.clear();
    for (std::size_t n = 0; n < rows; ++n) names.push_back("row " + std::to_string(n));
  }
  print_matrix(title, names, columns,
               [&](std::size_t i, std::size_t j) { return t.at(static_cast<std::int64_t>(i * columns + j)); });
}

std::vector<std::string> key_names(const Trace& trace) {
  const auto keys = static_cast<std::size_t>(trace.source.problem.key_length);
  if (trace.tokens.size() == keys && !trace.source.golden) return trace.tokens;
  if (trace.source.golden && trace.source.golden->tokens.size() == keys) return trace.source.golden->tokens;
  std::vector<std::string> names;
  for (std::size_t j = 0; j < keys; ++j) names.push_back("key " + std::to_string(j));
  return names;
}

/// A sentence on the token whose attention is the least even.
void interpret(const Trace& trace) {
  const std::vector<std::string> keys = key_names(trace);
  std::size_t best = trace.rows.size();
  double most = -1;
  for (std::size_t i = 0; i < trace.rows.size(); ++i) {
    const Row& row = trace.rows[i];
    if (row.visible_count < 2) continue;
    const double top = *std::max_element(row.weights.begin(), row.weights.end());
    const double excess = top * static_cast<double>(row.visible_count);
    if (excess > most) {
      most = excess;
      best = i;
    }
  }
  if (best == trace.rows.size()) {
    fmt::print("\nNo token sees more than one key, so every output is that key's value.\n");
    return;
  }
  const Row& row = trace.rows[best];
  const auto top =
      static_cast<std::size_t>(std::max_element(row.weights.begin(), row.weights.end()) - row.weights.begin());
  fmt::print(
      "\n\"{}\" attends most to \"{}\": {:.1f}% of its weight, where an even share among the {} keys it sees would be "
      "{:.1f}%.\nIts output is therefore {} the value of \"{}\".\n",
      trace.tokens[best], keys[top], 100 * row.weights[top], row.visible_count,
      100.0 / static_cast<double>(row.visible_count),
      row.weights[top] > 0.9   ? "almost exactly"
      : row.weights[top] > 0.5 ? "mostly"
                               : "only partly",
      keys[top]);
}

nlohmann::json matrix_json(const std::vector<Row>& rows, const auto& get) {
  nlohmann::json matrix = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json line = nlohmann::json::array();
    for (double value : get(row)) {
      if (std::isfinite(value))
        line.push_back(value);
      else
        line.push_back(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    matrix.push_back(line);
  }
  return matrix;
}

std::vector<double> masked_scores(const Row& row) {
  std::vector<double> scores = row.biased;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (!row.seen[j]) scores[j] = -kInfinity;
  }
  return scores;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string heat_map(const Trace& trace, const std::vector<Row>& rows, const std::string& title, double x0) {
  const std::vector<std::string> keys = key_names(trace);
  const double cell = rows.size() <= 12 ? 46 : std::max(6.0, 560.0 / static_cast<double>(rows.size()));
  std::string svg = fmt::format("<text x=\"{}\" y=\"24\" class=\"title\">{}</text>\n", x0 + 70, title);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = 60 + cell * static_cast<double>(i);
    if (cell > 20) {
      svg += fmt::format("<text x=\"{}\" y=\"{}\" class=\"row\">{}</text>\n", x0 + 64, y + cell / 2 + 4,
                         escaped(trace.tokens[i]));
    }
    for (std::size_t j = 0; j < rows[i].weights.size(); ++j) {
      const double w = rows[i].weights[j], x = x0 + 70 + cell * static_cast<double>(j);
      const int red = static_cast<int>(247 - 239 * w), green = static_cast<int>(251 - 203 * w),
                blue = static_cast<int>(255 - 148 * w);
      const std::string fill = rows[i].seen[j] ? fmt::format("rgb({},{},{})", red, green, blue) : "url(#hidden)";
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                         cell - 1, cell - 1, fill);
      if (cell > 40 && rows[i].seen[j]) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"cell\" fill=\"{}\">{:.3f}</text>\n", x + cell / 2,
                           y + cell / 2 + 4, w > 0.55 ? "white" : "#222", w);
      }
    }
  }
  if (cell > 20) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"52\" class=\"column\">{}</text>\n",
                         x0 + 70 + cell * (static_cast<double>(j) + 0.5), escaped(keys[j]));
    }
  }
  return svg;
}

}  // namespace

Trace trace_case(const Case& source, bool causal) {
  Trace trace{source, {}, {}, {}, 0, 0};
  Problem& p = trace.source.problem;
  if (p.batch < 1 || p.query_heads < 1 || p.query_length < 1)
    throw UserError(source.label + ": there is nothing to trace");
  if (!p.has_scores()) throw UserError(source.label + ": a trace shows scores, and this operator has none");
  if (p.query_length > kMostTokens || p.key_length > kMostTokens) {
    throw UserError(fmt::format("{}: {} x {} is too large to read; up to {} tokens are traced", source.label,
                                p.query_length, p.key_length, kMostTokens));
  }
  if (causal) p.causal = true;
  const CaseInputs made = source.inputs ? CaseInputs{} : make_inputs(p);
  const Inputs inputs = source.inputs ? source.inputs->views() : made.views();
  if (!trace.source.inputs) trace.source.inputs = made;
  trace.rows = trace_rows(p, inputs);
  Problem with_causal = p;
  with_causal.causal = true;
  trace.causal_rows = trace_rows(with_causal, inputs);

  std::vector<double> scaled, raw;
  for (const Row& row : trace.rows) {
    for (double score : row.raw) {
      scaled.push_back(score);
      raw.push_back(p.scale_value() == 0 ? 0 : score / p.scale_value());
    }
  }
  trace.variance_before = variance(raw);
  trace.variance_after = variance(scaled);
  const auto count = static_cast<std::size_t>(p.query_length);
  if (source.golden && source.golden->tokens.size() == count) trace.tokens = source.golden->tokens;
  for (std::size_t n = trace.tokens.size(); n < count; ++n) trace.tokens.push_back("query " + std::to_string(n));
  return trace;
}

void print_trace(const Trace& trace) {
  const Problem& p = trace.source.problem;
  const Inputs inputs = trace.source.inputs->views();
  fmt::print("{}\n", trace.source.from_file ? trace.source.label : print_case(p));
  if (trace.source.golden && !trace.source.golden->about.empty()) fmt::print("{}\n", trace.source.golden->about);
  fmt::print("q [{} x {}], k [{} x {}], v [{} x {}], scale {:.6g}", p.query_length, p.key_dim, p.key_length, p.key_dim,
             p.key_length, p.value_dim, p.scale_value());
  fmt::print("{}{}\n", p.causal ? ", causal" : "", p.batch * p.query_heads > 1 ? "; batch 0, head 0 is shown" : "");
  if (trace.source.golden) {
    print_golden_matrix(trace, "X", "embeddings X");
    print_golden_matrix(trace, "W_Q", "projection W_Q; q = X * W_Q");
    print_golden_matrix(trace, "W_K", "projection W_K; k = X * W_K");
    print_golden_matrix(trace, "W_V", "projection W_V; v = X * W_V");
  }
  const std::vector<std::string> keys = key_names(trace);
  print_tensor("queries q", inputs.q, trace.tokens);
  print_tensor("keys k", inputs.k, keys);
  print_tensor("values v", inputs.v, keys);
  const auto columns = static_cast<std::size_t>(p.key_length);
  const double scale = p.scale_value();
  print_matrix("scores q * k^T", trace.tokens, columns,
               [&](std::size_t i, std::size_t j) { return scale == 0 ? 0 : trace.rows[i].raw[j] / scale; });
  print_matrix("scaled scores", trace.tokens, columns,
               [&](std::size_t i, std::size_t j) { return trace.rows[i].raw[j]; });
  fmt::print("\nvariance of the scores: {:.4g} before scaling, {:.4g} after\n", trace.variance_before,
             trace.variance_after);
  print_matrix("masked scores", trace.tokens, columns,
               [&](std::size_t i, std::size_t j) { return masked_scores(trace.rows[i])[j]; });
  print_matrix("weights", trace.tokens, columns,
               [&](std::size_t i, std::size_t j) { return trace.rows[i].weights[j]; });
  fmt::print("  row sums  ");
  for (const Row& row : trace.rows) {
    double sum = 0;
    for (double w : row.weights) sum += w;
    fmt::print(" {:.4f}", sum);
  }
  fmt::print("\n");
  print_matrix("output", trace.tokens, static_cast<std::size_t>(p.value_dim),
               [&](std::size_t i, std::size_t c) { return trace.rows[i].output[c]; });
  interpret(trace);
}

std::string trace_svg(const Trace& trace) {
  const double cell = trace.rows.size() <= 12 ? 46 : std::max(6.0, 560.0 / static_cast<double>(trace.rows.size()));
  const double width = 100 + cell * static_cast<double>(trace.source.problem.key_length);
  const double height = 80 + cell * static_cast<double>(trace.rows.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\">\n",
      2 * width + 20, height);
  svg +=
      "<style>.title{font-size:15px;font-weight:bold}.row{font-size:12px;text-anchor:end}"
      ".column,.cell{font-size:12px;text-anchor:middle}</style>\n"
      "<defs><pattern id=\"hidden\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
      "<rect width=\"6\" height=\"6\" fill=\"#eee\"/><path d=\"M0 6L6 0\" stroke=\"#bbb\"/></pattern></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += heat_map(trace, trace.rows, trace.source.problem.causal ? "weights, causal as the case says" : "weights", 0);
  svg += heat_map(trace, trace.causal_rows, "weights with the causal mask", width + 20);
  return svg + "</svg>\n";
}

std::string trace_json(const Trace& trace) {
  nlohmann::ordered_json json;
  json["case"] = trace.source.label;
  json["scale"] = trace.source.problem.scale_value();
  json["tokens"] = trace.tokens;
  json["variance_before"] = trace.variance_before;
  json["variance_after"] = trace.variance_after;
  json["scaled_scores"] = matrix_json(trace.rows, [](const Row& row) { return row.raw; });
  json["masked_scores"] = matrix_json(trace.rows, masked_scores);
  json["weights"] = matrix_json(trace.rows, [](const Row& row) { return row.weights; });
  json["causal_weights"] = matrix_json(trace.causal_rows, [](const Row& row) { return row.weights; });
  json["output"] = matrix_json(trace.rows, [](const Row& row) { return row.output; });
  json["lse"] = matrix_json(trace.rows, [](const Row& row) { return std::vector<double>{row.lse}; });
  return json.dump(1) + "\n";
}

}  // namespace attest

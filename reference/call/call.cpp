#include "reference/call/call.h"

#include <algorithm>
#include <cmath>

namespace attest {

std::optional<Op> operator_without(Op op, OperatorTrait trait) {
  OperatorTraits wanted = traits_of(op);
  if (!(wanted.*trait)) return std::nullopt;
  wanted.*trait = false;
  for (const Op other : values_of<Op>()) {
    if (traits_of(other) == wanted) return other;
  }
  return std::nullopt;
}

std::vector<Output> default_outputs(Pass pass) {
  switch (pass) {
    case Pass::forward: return {Output::o};
    case Pass::backward: return {Output::dq, Output::dk, Output::dv};
    case Pass::both: return {Output::o, Output::dq, Output::dk, Output::dv};
  }
  return {};
}

void Call::set_pass(Pass other) {
  if (outputs == default_outputs(pass)) outputs = default_outputs(other);
  pass = other;
  if (!wants_gradients()) dlse = dpresent = false;
  std::erase_if(outputs, [&](Output one) { return is_gradient(one) ? !wants_gradients() : !runs_forward(); });
  if (outputs.empty()) outputs = default_outputs(pass);
}

bool Call::wants(Output output) const { return std::find(outputs.begin(), outputs.end(), output) != outputs.end(); }

double Call::scale_value() const { return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(key_dim)); }

std::int64_t Call::query_count(std::int64_t b) const {
  if (has_one_length()) return key_count(b);
  const auto at = static_cast<std::size_t>(b);
  return lengths && at < lengths->query.size() ? lengths->query[at] : query_length;
}

std::int64_t Call::key_count(std::int64_t b) const {
  const auto at = static_cast<std::size_t>(b);
  const std::int64_t given = lengths && at < lengths->key.size() ? lengths->key[at] : key_length;
  return page_size || past_lengths.empty() ? given : std::min(given, key_length - past + past_length(b));
}

std::int64_t Call::stored_keys(std::int64_t b) const {
  if (packed_sequences() || page_size) return key_count(b);
  return key_length - past + past_length(b);
}

std::int64_t Call::diagonal_offset(std::int64_t b) const {
  if (past > 0) return past_length(b);
  return align == Align::bottom_right ? key_count(b) - query_count(b) : 0;
}

bool Call::wants_scores() const {
  return wants(Output::raw) || wants(Output::capped) || wants(Output::biased) || wants(Output::weights);
}

std::vector<double> published_alibi_slopes(std::int64_t heads) {
  const auto of_power = [](std::int64_t n) {
    double ratio = 0x1p-8;  // 2^(-8/n) by halving the exponent
    for (std::int64_t m = n; m > 1; m /= 2) ratio = std::sqrt(ratio);
    std::vector<double> slopes;
    double slope = 1;
    for (std::int64_t h = 0; h < n; ++h) slopes.push_back(slope *= ratio);
    return slopes;
  };
  if (heads == 0) return {};
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes = of_power(power);
  const std::vector<double> finer = power < heads ? of_power(2 * power) : std::vector<double>{};
  for (std::size_t n = 0; static_cast<std::int64_t>(slopes.size()) < heads; n += 2) slopes.push_back(finer[n]);
  return slopes;
}

double dense_multiply_adds(const Call& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length) *
         static_cast<double>(p.key_length) * static_cast<double>(p.key_dim + p.value_dim);
}

std::int64_t page_count(const Call& p, std::int64_t b) { return (p.key_count(b) + *p.page_size - 1) / *p.page_size; }

std::int64_t page_count(const Call& p) {
  std::int64_t pages = 0;
  if (p.dynamic || !p.lengths) {
    const std::int64_t each = p.key_length / *p.page_size + (p.key_length % *p.page_size != 0);
    return __builtin_mul_overflow(p.batch, each, &pages) ? std::numeric_limits<std::int64_t>::max() : pages;
  }
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(p.lengths->key.size()); ++b) pages += page_count(p, b);
  return pages;
}

std::int64_t table_rows(const Call& p) {
  if (p.rope_positions > 0) return p.rope_positions;
  std::int64_t rows = 0;
  return __builtin_add_overflow(p.query_length, p.key_length, &rows) ? Call::kUnbounded : rows;
}

std::int64_t part_count(const Call& p) {
  std::int64_t parts = 0;
  return __builtin_mul_overflow(p.parts, p.batch, &parts) ? std::numeric_limits<std::int64_t>::max() : parts;
}

std::int64_t selectable(const Call& call, std::int64_t b) {
  const std::int64_t block = call.select ? call.select->block : 1;
  return (call.key_count(b) + block - 1) / block;
}

std::int64_t block_rows(const Call& p) { return (p.query_length + p.blocks->rows - 1) / p.blocks->rows; }
std::int64_t block_columns(const Call& p) { return (p.key_length + p.blocks->columns - 1) / p.blocks->columns; }

bool Call::uses_diagonal() const { return causal || alibi || window_left != kUnbounded || window_right != kUnbounded; }

}  // namespace attest

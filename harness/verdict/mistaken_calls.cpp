#include "harness/verdict/mistaken_calls.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "reference/call/tensor_table.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

/// Elements that a mistake may write anew.
constexpr double kMostElements = 1 << 22;

bool too_large(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) * static_cast<double>(d) >
         kMostElements;
}

ConstTensor dense(const void* data, DType dtype, const Index4& n) {
  return {data, dtype, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}
ConstTensor dense(const std::vector<double>& data, const Index4& n) { return dense(data.data(), DType::f64, n); }
ConstTensor dense(const std::vector<std::uint8_t>& data, const Index4& n) {
  return dense(data.data(), DType::boolean, n);
}

/// Keys and values written anew and dense, in float64 that holds each exactly: `of(cache, b, h, j)` says which ones,
/// `keys` and `heads` how many.
bool rewrite_keys(
    MistakenCall& c, std::int64_t heads, std::int64_t keys,
    const std::function<std::array<std::int64_t, 3>(Cache, std::int64_t, std::int64_t, std::int64_t)>& of) {
  const Call p = c.call;
  if (!p.has_scores() || p.has_stored_scales() || p.wants(Output::present) ||
      too_large(p.batch, heads, keys, p.key_dim + p.value_dim))
    return false;
  for (const Cache cache : {Cache::keys, Cache::values}) {
    const std::int64_t dim = cache == Cache::keys ? p.key_dim : p.value_dim;
    std::vector<double>& to = cache == Cache::keys ? c.keys : c.values;
    to.assign(static_cast<std::size_t>(p.batch * heads * keys * dim), 0);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t j = 0; j < keys; ++j) {
          const auto [batch, head, key] = of(cache, b, h, j);
          const bool there = key >= 0 && key < p.stored_keys(batch);
          for (std::int64_t d = 0; d < dim; ++d)
            to[at++] = there ? load_cached(p, c.inputs, cache, batch, head, key, d) : 0;
        }
      }
    }
  }
  c.inputs.set(TensorId::k, dense(c.keys, {p.batch, heads, keys, p.key_dim}));
  c.inputs.set(TensorId::v, dense(c.values, {p.batch, heads, keys, p.value_dim}));
  for (const TensorId id : {TensorId::past_k, TensorId::past_v, TensorId::page_table}) c.inputs.remove(id);
  c.call.page_size.reset();
  c.call.key_heads = heads;
  return true;
}

}  // namespace

bool read_key_heads(MistakenCall& c, const std::function<std::int64_t(std::int64_t)>& of,
                    const std::function<std::int64_t(std::int64_t)>& from_batch) {
  const Call p = c.call;
  bool changes = false;
  for (std::int64_t h = 0; h < p.query_heads; ++h) changes = changes || of(h) != h / p.heads_per_group();
  for (std::int64_t b = 0; b < p.batch; ++b) changes = changes || from_batch(b) != b;
  return changes &&
         rewrite_keys(c, p.query_heads, p.key_length, [&](Cache, std::int64_t b, std::int64_t h, std::int64_t j) {
           return std::array{from_batch(b), of(h), j};
         });
}

bool read_keys_at(MistakenCall& c, const std::function<std::int64_t(std::int64_t)>& of) {
  return rewrite_keys(c, c.call.key_heads, c.call.key_length,
                      [&](Cache, std::int64_t b, std::int64_t h, std::int64_t j) {
                        return std::array{b, h, of(j)};
                      });
}

bool read_first_keys(MistakenCall& c) {
  return c.call.key_heads > 1 && rewrite_keys(c, c.call.key_heads, c.call.key_length,
                                              [](Cache cache, std::int64_t b, std::int64_t h, std::int64_t j) {
                                                return std::array{b, cache == Cache::keys ? std::int64_t{0} : h, j};
                                              });
}

bool pad_keys(MistakenCall& c, std::int64_t tile) {
  const Call& p = c.call;
  const bool plain = !p.causal && !p.alibi && p.window_left == Call::kUnbounded && p.window_right == Call::kUnbounded &&
                     !p.lengths && !p.segments && !p.mask && !p.blocks && p.dropout == 0 && !c.inputs.keep() &&
                     !p.wants_scores() && !p.packed_sequences();
  const std::int64_t padded = (p.key_length + tile - 1) / tile * tile;
  if (!plain || padded == p.key_length) return false;
  if (!rewrite_keys(c, p.key_heads, padded, [](Cache, std::int64_t b, std::int64_t h, std::int64_t j) {
        return std::array{b, h, j};
      }))
    return false;
  c.call.key_length = padded;
  return true;
}

bool score_pairs(MistakenCall& c, const std::function<double(double, double, double)>& score) {
  const Call& p = c.call;
  if (!p.has_scores() || p.wants_scores() || too_large(p.batch, p.query_heads, p.query_length, p.key_length))
    return false;
  c.mask.assign(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_length), 0);
  // Whether a mask shows a pair is part of the score here; what else hides stays.
  Inputs unmasked = c.inputs;
  if (unmasked.mask() && is_additive(*unmasked.mask())) unmasked.remove(TensorId::mask);
  std::size_t at = 0;
  Row row;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const Head head(p, c.inputs, b, h);
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        const bool there = i < p.stored_queries(b);
        if (there) head.attend(i, row);
        for (std::int64_t j = 0; j < p.key_length; ++j, ++at) {
          if (!there || !visible(p, unmasked, b, h, i, j)) {
            c.mask[at] = -kInfinity;
            continue;
          }
          const auto key = static_cast<std::size_t>(j);
          const ScoreBias bias = row.bias(key);
          const double raw = row.raw[key];
          c.mask[at] = score(raw, bias.additive, bias.alibi) - raw;
        }
      }
    }
  }
  c.inputs.set(TensorId::mask, dense(c.mask, seen_shape(p, TensorId::mask)));
  c.inputs.remove(TensorId::slopes);
  c.call.alibi = false;
  c.call.alibi_slopes.clear();
  c.call.softcap.reset();
  c.call.mask = MaskSpec{true, {true, true, true, true}};
  c.call.tensor(TensorId::mask).dtype = DType::f64;
  return true;
}

bool hide_pairs(MistakenCall& c,
                const std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& shown) {
  const Call& p = c.call;
  if (!p.has_scores() || too_large(p.batch, p.query_heads, p.query_length, p.key_length)) return false;
  const auto before_at = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return !p.blocks || c.inputs.block(b, h, i / p.blocks->rows, j / p.blocks->columns);
  };
  c.blocks.assign(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_length), 0);
  std::size_t at = 0;
  bool changes = false;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        for (std::int64_t j = 0; j < p.key_length; ++j, ++at) {
          const bool before = before_at(b, h, i, j), now = before && shown(b, h, i, j);
          changes = changes || now != before;
          c.blocks[at] = now;
        }
      }
    }
  }
  c.call.blocks = BlockSpec{1, 1};
  c.inputs.set(TensorId::blocks, dense(c.blocks, seen_shape(p, TensorId::blocks)));
  return changes;
}

bool read_mask_at(MistakenCall& c, const std::function<Index4(const Index4&)>& at) {
  const Call& p = c.call;
  if (!c.inputs.mask() || too_large(p.batch, p.query_heads, p.query_length, p.key_length)) return false;
  const ConstTensor given = *c.inputs.mask();
  const bool additive = is_additive(given);
  const auto count = static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_length);
  c.mask.assign(additive ? count : 0, 0);
  c.visible.assign(additive ? 0 : count, 0);
  std::size_t n = 0;
  bool changes = false;
  const Index4 extents = {p.batch, p.query_heads, p.query_length, p.key_length};
  each_index(extents, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto value = [&](const Index4& x) {
      return load(given.data, given.dtype, given.offset(x[0], x[1], x[2], x[3]));
    };
    const double now = value(at({b, h, i, j}));
    changes = changes || now != value({b, h, i, j});
    if (additive)
      c.mask[n++] = now;
    else
      c.visible[n++] = now != 0;
  });
  c.inputs.set(TensorId::mask, additive ? dense(c.mask, extents) : dense(c.visible, extents));
  return changes;
}

bool has_window(const Call& p) { return p.window_left != Call::kUnbounded || p.window_right != Call::kUnbounded; }

bool scaled_by(MistakenCall& c, double scale) {
  if (scale == c.call.scale_value() || !std::isfinite(scale)) return false;
  c.call.scale = scale;
  return true;
}

bool drop_trait(MistakenCall& c, OperatorTrait trait) {
  const std::optional<Op> without = operator_without(c.call.op, trait);
  if (!without) return false;
  c.call.op = *without;
  // A gradient of what is dropped has nothing to be compared with.
  const std::vector<Output> given = outputs_of(c.call.op);
  return std::ranges::all_of(c.call.outputs, [&](Output one) { return std::ranges::find(given, one) != given.end(); });
}

bool causal_by(MistakenCall& c, std::int64_t keys) {
  Call& p = c.call;
  if (!p.causal || p.window_right <= 0) return false;
  p.causal = false;
  p.window_right = std::min(p.window_right, keys);
  return true;
}

bool window_by(MistakenCall& c, std::int64_t Call::*side, std::int64_t keys) {
  std::int64_t& width = c.call.*side;
  if (width == Call::kUnbounded) return false;
  width += keys;
  return true;
}

bool forget_delta(MistakenCall& c) {
  const Call& p = c.call;
  if (p.runs_forward() || !p.has_scores()) return false;
  const auto number = [](const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
    return load(t.data, t.dtype, t.offset(b, h, i, d));
  };
  const Index4 shape = {p.batch, p.query_heads, p.query_length, 1};
  c.dlse.assign(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length), 0);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
        double& of_row = c.dlse[static_cast<std::size_t>((b * p.query_heads + h) * p.query_length + i)];
        if (c.inputs.dlse()) of_row = number(*c.inputs.dlse(), b, h, i, 0);
        for (std::int64_t d = 0; d < p.value_dim; ++d)
          of_row += number(c.inputs.dout(), b, h, i, d) * number(c.inputs.saved_o(), b, h, i, d);
      }
    }
  }
  c.call.dlse = true;
  c.inputs.set(TensorId::dlse, {c.dlse.data(), DType::f64, shape, {shape[1] * shape[2], shape[2], 1, 1}});
  return true;
}

void give_slopes(MistakenCall& c, std::vector<double> slopes) {
  c.slopes = std::move(slopes);
  if (c.slopes.empty()) return;
  const bool by_batch = c.slopes.size() > static_cast<std::size_t>(c.call.query_heads);
  c.inputs.set(TensorId::slopes, numbers_of_heads(c.slopes.data(), c.call.batch, c.call.query_heads, by_batch));
}

bool slopes_of(MistakenCall& c, const std::function<std::size_t(std::size_t, std::size_t)>& of) {
  const std::vector<double> given = list_numbers(c.inputs.slopes());
  std::vector<double> slopes;
  for (std::size_t h = 0; h < given.size(); ++h) slopes.push_back(given[of(h, given.size())]);
  const bool changes = given != slopes;
  give_slopes(c, std::move(slopes));
  return changes;
}

bool sinks_of(MistakenCall& c, const std::function<double(const std::vector<double>&, std::size_t)>& of) {
  const std::vector<double> given = list_numbers(c.inputs.sinks());
  for (std::size_t h = 0; h < given.size(); ++h) c.sinks.push_back(of(given, h));
  if (given.empty()) return false;
  c.inputs.set(TensorId::sinks, numbers_of_heads(c.sinks.data(), 1, c.call.query_heads, false));
  return given != c.sinks;
}

bool give_power_slopes(MistakenCall& c) {
  if (!c.inputs.slopes() || !c.call.alibi_slopes.empty()) return false;
  const auto heads = static_cast<double>(c.call.query_heads);
  std::vector<double> slopes;
  for (std::int64_t h = 1; h <= c.call.query_heads; ++h)
    slopes.push_back(std::exp2(-8 * static_cast<double>(h) / heads));
  give_slopes(c, std::move(slopes));
  return true;
}

bool change_lengths(MistakenCall& c, const std::function<void(Call&)>& change) {
  Call& p = c.call;
  if (!p.lengths || p.packed_sequences() || p.page_size) return false;
  const std::optional<LengthSpec> before = p.lengths;
  change(p);
  return before != p.lengths;
}

bool remove_input(MistakenCall& c, TensorId id) {
  const bool given = c.inputs.has(id);
  c.inputs.remove(id);
  return given;
}

bool keep_all(MistakenCall& c) {
  const Index4 n = seen_shape(c.call, TensorId::keep);
  if (c.call.dropout == 0 || too_large(n[0], n[1], n[2], n[3])) return false;
  c.keep.assign(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]), 1);
  c.inputs.set(TensorId::keep, dense(c.keep, n));
  return true;
}

bool read_pages_in_order(MistakenCall& c) {
  const ConstTensor* table = c.inputs.page_table();
  if (!table) return false;
  const auto pages = static_cast<std::int32_t>(c.inputs.k().shape[0]);
  const std::int64_t columns = table->shape[3];
  bool changes = false;
  for (std::int64_t n = 0; pages > 0 && n < c.call.batch * columns; ++n) {
    const std::int64_t given = c.inputs.page(n / columns, n % columns);
    c.pages.push_back(static_cast<std::int32_t>(n) % pages);
    changes = changes || (given >= 0 && given != c.pages.back());
  }
  c.inputs.set(TensorId::page_table, {c.pages.data(), DType::i32, table->shape, {columns, 0, 0, 1}});
  return changes;
}

bool read_first_blocks(MistakenCall& c) {
  if (!c.inputs.blocks()) return false;
  const Inputs given = c.inputs;
  const BlockSpec size = *c.call.blocks;
  c.inputs.remove(TensorId::blocks);
  c.call.blocks.reset();
  return hide_pairs(c, [&](std::int64_t, std::int64_t, std::int64_t i,
                           std::int64_t j) { return given.block(0, 0, i / size.rows, j / size.columns); }) &&
         c.call.batch * c.call.query_heads > 1;
}

bool score_masked_pairs(MistakenCall& c, const std::function<double(double, double, double)>& score) {
  return c.inputs.mask() && is_additive(*c.inputs.mask()) && !c.call.softcap && score_pairs(c, score);
}

bool read_first_mask(MistakenCall& c, std::size_t axis) {
  return read_mask_at(c, [axis](Index4 x) {
    x[axis] = 0;
    return x;
  });
}

}  // namespace attest

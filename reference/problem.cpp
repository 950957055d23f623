#include "reference/problem.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

__extension__ typedef __int128 Wide;  // sizes are checked before they are trusted

bool is_self_shaped(const Problem& p) {
  return p.past == 0 && !p.page_size && p.query_length == p.key_length && p.query_heads == p.key_heads &&
         p.key_dim == p.value_dim;
}

std::optional<std::int64_t> checked_extent(const Index4& shape, const Index4& strides, std::int64_t offset) {
  for (std::int64_t n : shape) {
    if (n == 0) return offset;
  }
  std::int64_t last = offset;
  for (int axis = 0; axis < 4; ++axis) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) || __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  std::int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, 8, &bytes)) return std::nullopt;
  return last;
}

/// True when no two indices of the view share storage: sorted by stride, each axis steps past all before it.
bool is_injective(const Index4& shape, const Index4& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (int axis = 0; axis < 4; ++axis) {
    if (shape[axis] > 1) axes.emplace_back(strides[axis], shape[axis]);
  }
  std::sort(axes.begin(), axes.end());
  Wide reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return false;
    reach += static_cast<Wide>(stride) * (extent - 1);
  }
  return true;
}

std::optional<Fault> check_lengths(const Problem& p) {
  if (!p.lengths) return std::nullopt;
  const auto check = [&](const std::vector<std::int64_t>& list, std::int64_t limit,
                         const char* what) -> std::optional<Fault> {
    if (static_cast<std::int64_t>(list.size()) != p.batch) {
      return Fault{"lengths", "one length per batch is needed: " + std::to_string(p.batch) + ", not " +
                                  std::to_string(list.size())};
    }
    for (std::int64_t n : list) {
      if (n > limit) {
        return Fault{"lengths", std::to_string(n) + " is beyond " + what + " = " + std::to_string(limit)};
      }
    }
    return std::nullopt;
  };
  if (auto fault = check(p.lengths->key, p.key_length, "Lk")) return fault;
  if (!p.lengths->query.empty()) return check(p.lengths->query, p.query_length, "Lq");
  return std::nullopt;
}

std::optional<Fault> check_segments(const Problem& p) {
  if (!p.segments) return std::nullopt;
  const auto& query = p.segments->query.empty() ? p.segments->key : p.segments->query;
  if (query.size() != p.segments->key.size()) {
    return Fault{"segments", "as many query segments as key segments are needed"};
  }
  const auto check = [](const std::vector<std::int64_t>& list, std::int64_t want,
                        const char* what) -> std::optional<Fault> {
    std::int64_t sum = 0;
    for (std::int64_t n : list) {
      if (__builtin_add_overflow(sum, n, &sum)) sum = -1;
    }
    if (sum == want) return std::nullopt;
    return Fault{"segments", "the lengths must add up to " + std::string(what) + " = " + std::to_string(want)};
  };
  if (auto fault = check(query, p.query_length, "Lq")) return fault;
  return check(p.segments->key, p.key_length, "Lk");
}

std::optional<Fault> check_combinations(const Problem& p) {
  for (std::size_t n = 0; n < kTensorNames.size(); ++n) {
    if (p.tensors[n].layout == Layout::thd) {
      return Fault{std::string(kTensorNames[n]) + ".layout", "thd packs every tensor; say layout=thd"};
    }
  }
  if (p.packed_sequences()) {
    if (!p.lengths) return Fault{"layout", "thd packs sequences of given lengths; add lengths="};
    for (const char* key : {"q", "k", "v", "out"}) {
      const auto id =
          static_cast<TensorId>(std::find(kTensorNames.begin(), kTensorNames.end(), key) - kTensorNames.begin());
      if (p.tensor(id).strides || p.tensor(id).layout) {
        return Fault{std::string(key) + ".strides", "thd has no strides to choose"};
      }
    }
    if (p.past > 0) return Fault{"past", "thd has no cached keys; leave past out"};
  }
  if (p.page_size) {
    if (p.packed_sequences()) return Fault{"paged", "pages replace the layout thd of keys; choose another layout"};
    for (TensorId id : {TensorId::k, TensorId::v}) {
      if (p.tensor(id).strides) return Fault{"paged", "a paged cache has no strides to choose"};
    }
  }
  if (p.wants_scores() && (p.packed_sequences() || p.page_size)) {
    return Fault{"out", "stages of the scores need every key stored: neither layout=thd nor paged"};
  }
  if (p.wants(Output::present) && (p.packed_sequences() || p.page_size)) {
    return Fault{"out", "present belongs to past: neither layout=thd nor paged"};
  }
  if (p.segments && p.past > 0) return Fault{"segments", "segments and past exclude each other"};
  return std::nullopt;
}

/// Linear attention has no scores, so nothing that hides, biases or caps them.
std::optional<Fault> check_linear(const Problem& p) {
  const std::string op(kOpNames[static_cast<std::size_t>(p.op)]);
  if (p.op == Op::attention) {
    if (p.decay_per_head) return Fault{"decay", "softmax attention has no decay; choose op=gated or op=gated_delta"};
    if (p.beta_shared) return Fault{"beta", "softmax attention has no beta; choose op=delta or op=gated_delta"};
    if (p.initial_state) return Fault{"state", "softmax attention has no state; choose op=linear or its kin"};
    return std::nullopt;
  }
  const auto stranger = [&](const char* key) { return Fault{key, "op=" + op + " has no such option; leave it out"}; };
  if (p.causal) return stranger("causal");
  if (p.align != Align::top_left) return stranger("align");
  if (p.window_left != Problem::kUnbounded || p.window_right != Problem::kUnbounded) return stranger("window");
  if (p.prefix != 0) return stranger("prefix");
  if (p.lengths) return stranger("lengths");
  if (p.segments) return stranger("segments");
  if (p.mask) return stranger("mask");
  if (p.blocks) return stranger("blocks");
  if (p.softcap) return stranger("softcap");
  if (p.alibi) return stranger("alibi");
  if (p.sinks) return stranger("sinks");
  if (p.dropout != 0) return stranger("dropout");
  if (p.past != 0) return Fault{"past", "op=" + op + " keeps a state instead of cached keys; say state"};
  if (p.page_size) return stranger("paged");
  if (p.wants(Output::lse) || p.wants_scores()) return Fault{"out", "op=" + op + " gives o and present alone"};
  if (!p.poison.empty()) return stranger("poison");
  if (p.query_length != p.key_length) return Fault{"seq", "op=" + op + " needs as many keys as queries"};
  if (p.decay_per_head && !p.has_decay()) return stranger("decay");
  if (p.beta_shared && !p.has_beta()) return stranger("beta");
  return std::nullopt;
}

std::optional<Fault> check_storage(const Problem& p) {
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::mask, TensorId::out}) {
    const std::string name(kTensorNames[static_cast<std::size_t>(id)]);
    const TensorSpec& spec = p.tensor(id);
    if (id == TensorId::mask && !p.mask) {
      if (spec.strides || spec.offset != 0) return Fault{"mask.strides", "there is no mask to lay out"};
      continue;
    }
    // Distances are what can overflow first; the dense size overflows before any stride does.
    Wide elements = 1;
    for (std::int64_t n : shape_of(p, id)) elements *= n > 0 ? n : 1;
    if (elements > (Wide{1} << 59) || !storage_elements(p, id)) {
      return Fault{spec.strides ? name + ".strides" : "seq",
                   "the size of " + name + " does not fit in 63 bits; make it smaller"};
    }
    if (id == TensorId::out && spec.strides && !is_injective(shape_of(p, id), *spec.strides)) {
      return Fault{"out.strides", "two elements of the output would share storage; give every axis room"};
    }
  }
  return std::nullopt;
}

}  // namespace

bool Problem::wants(Output output) const { return std::find(outputs.begin(), outputs.end(), output) != outputs.end(); }

double Problem::scale_value() const { return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(key_dim)); }

std::int64_t Problem::query_count(std::int64_t b) const {
  const auto at = static_cast<std::size_t>(b);
  return lengths && at < lengths->query.size() ? lengths->query[at] : query_length;
}

std::int64_t Problem::key_count(std::int64_t b) const {
  const auto at = static_cast<std::size_t>(b);
  return lengths && at < lengths->key.size() ? lengths->key[at] : key_length;
}

std::int64_t Problem::diagonal_offset(std::int64_t b) const {
  if (past > 0) return past;
  return align == Align::bottom_right ? key_count(b) - query_count(b) : 0;
}

bool Problem::wants_scores() const {
  return wants(Output::raw) || wants(Output::capped) || wants(Output::biased) || wants(Output::weights);
}

Placement locate(const Problem& p, std::int64_t b, std::int64_t i, std::int64_t j) {
  if (!p.segments) return {true, i + p.diagonal_offset(b), j};
  const auto& keys = p.segments->key;
  const auto& queries = p.segments->query.empty() ? keys : p.segments->query;
  std::int64_t query_start = 0, key_start = 0;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const bool holds_query = i < query_start + queries[n], holds_key = j < key_start + keys[n];
    if (holds_query || holds_key) {
      const std::int64_t offset = p.align == Align::bottom_right ? keys[n] - queries[n] : 0;
      return {holds_query && holds_key, i - query_start + offset, j - key_start};
    }
    query_start += queries[n];
    key_start += keys[n];
  }
  return {false, 0, 0};
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

std::vector<std::int64_t> starts_of(const Problem& p, TensorId id) {
  std::vector<std::int64_t> starts = {0};
  const bool of_queries = id == TensorId::q || id == TensorId::out;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    starts.push_back(starts.back() + (of_queries ? p.query_count(b) : p.key_count(b)));
  }
  return starts;
}

std::int64_t page_count(const Problem& p, std::int64_t b) { return (p.key_count(b) + *p.page_size - 1) / *p.page_size; }

std::int64_t page_count(const Problem& p) {
  std::int64_t pages = 0;
  if (!p.lengths) {
    return __builtin_mul_overflow(p.batch, page_count(p, 0), &pages) ? std::numeric_limits<std::int64_t>::max() : pages;
  }
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(p.lengths->key.size()); ++b) pages += page_count(p, b);
  return pages;
}

std::int64_t block_rows(const Problem& p) { return (p.query_length + p.blocks->rows - 1) / p.blocks->rows; }
std::int64_t block_columns(const Problem& p) { return (p.key_length + p.blocks->columns - 1) / p.blocks->columns; }

DType Problem::mask_dtype() const { return mask && mask->dtype ? *mask->dtype : dtype; }

bool Problem::uses_diagonal() const {
  return causal || alibi || window_left != kUnbounded || window_right != kUnbounded;
}

Index4 shape_of(const Problem& p, TensorId id) {
  switch (id) {
    case TensorId::q: return {p.batch, p.query_heads, p.query_length, p.key_dim};
    case TensorId::k:
    case TensorId::v: {
      const std::int64_t dim = id == TensorId::k ? p.key_dim : p.value_dim;
      if (p.page_size) return {page_count(p), p.key_heads, *p.page_size, dim};
      return {p.batch, p.key_heads, p.key_length - p.past, dim};
    }
    case TensorId::out: return {p.batch, p.query_heads, p.query_length, p.value_dim};
    case TensorId::mask: break;
  }
  Index4 shape = {p.batch, p.query_heads, p.query_length, p.key_length};
  for (int axis = 0; axis < 4; ++axis) {
    if (!p.mask || !p.mask->kept[axis]) shape[axis] = 1;
  }
  return shape;
}

Index4 strides_of(const Problem& p, TensorId id) {
  const TensorSpec& spec = p.tensor(id);
  const Index4 n = shape_of(p, id);
  if (spec.strides) return *spec.strides;
  if (id == TensorId::mask) {
    Index4 strides = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    for (int axis = 0; axis < 4; ++axis) {
      if (!p.mask || !p.mask->kept[axis]) strides[axis] = 0;
    }
    return strides;
  }
  switch (spec.layout.value_or(p.layout)) {
    case Layout::bhld: return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    // Packed sequences: one row after another, heads side by side; the batch's stride is not used.
    case Layout::thd: return {0, n[3], n[1] * n[3], 1};
    case Layout::blhd:
    case Layout::bld: return {n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
    // Packed tensors keep q, k and v (or k and v) of one position side by side; the output is plain.
    case Layout::qkv:
      if (id == TensorId::out) break;
      return {n[2] * 3 * n[1] * n[3], n[3], 3 * n[1] * n[3], 1};
    case Layout::kv:
      if (id == TensorId::out || id == TensorId::q) break;
      return {n[2] * 2 * n[1] * n[3], n[3], 2 * n[1] * n[3], 1};
  }
  return {n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
}

std::optional<std::int64_t> storage_elements(const Problem& p, TensorId id) {
  if (p.packed_sequences() && id != TensorId::mask) {
    Index4 shape = shape_of(p, id);
    shape[0] = 1;
    shape[2] = starts_of(p, id).back();
    return checked_extent(shape, strides_of(p, id), p.tensor(id).offset);
  }
  return checked_extent(shape_of(p, id), strides_of(p, id), p.tensor(id).offset);
}

std::optional<Fault> find_fault(const Problem& p) {
  if (p.key_heads == 0 ? p.query_heads != 0 : p.query_heads % p.key_heads != 0) {
    return Fault{"heads", std::to_string(p.key_heads) + " key heads do not divide " + std::to_string(p.query_heads) +
                              " query heads"};
  }
  if (p.layout == Layout::qkv && !is_self_shaped(p)) {
    return Fault{"layout", "one packed qkv tensor needs equal lengths, heads and dims of q, k and v"};
  }
  if (p.past > p.key_length) {
    return Fault{"past", std::to_string(p.past) + " cached keys are more than Lk = " + std::to_string(p.key_length)};
  }
  if (p.prefix > p.key_length) {
    return Fault{"prefix", std::to_string(p.prefix) + " keys are more than Lk = " + std::to_string(p.key_length)};
  }
  if (auto fault = check_linear(p)) return fault;
  if (auto fault = check_combinations(p)) return fault;
  const auto per_head = [&](const char* key, const std::vector<double>& list) -> std::optional<Fault> {
    if (list.empty() || static_cast<std::int64_t>(list.size()) == p.query_heads) return std::nullopt;
    return Fault{key, "one number per query head is needed: " + std::to_string(p.query_heads) + ", not " +
                          std::to_string(list.size())};
  };
  if (auto fault = per_head("alibi", p.alibi_slopes)) return fault;
  if (auto fault = per_head("sinks", p.sink_values)) return fault;
  if (auto fault = check_lengths(p)) return fault;
  if (auto fault = check_segments(p)) return fault;
  return check_storage(p);
}

double dense_multiply_adds(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length) *
         static_cast<double>(p.key_length) * static_cast<double>(p.key_dim + p.value_dim);
}

}  // namespace attest

#include "reference/problem.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

__extension__ typedef __int128 Wide;  // sizes are checked before they are trusted

bool is_self_shaped(const Problem& p) {
  return p.query_length == p.key_length && p.query_heads == p.key_heads && p.key_dim == p.value_dim;
}

std::optional<std::int64_t> checked_extent(const Index4& shape, const Index4& strides, std::int64_t offset) {
  for (std::int64_t n : shape) {
    if (n == 0) return offset;
  }
  std::int64_t last = offset;
  for (int axis = 0; axis < 4; ++axis) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) ||
        __builtin_add_overflow(last, step, &last)) {
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

bool Problem::wants(Output output) const {
  return std::find(outputs.begin(), outputs.end(), output) != outputs.end();
}

double Problem::scale_value() const {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(key_dim));
}

std::int64_t Problem::diagonal_offset() const {
  if (past > 0) return past;
  return align == Align::bottom_right ? key_length - query_length : 0;
}

DType Problem::mask_dtype() const { return mask && mask->dtype ? *mask->dtype : dtype; }

bool Problem::uses_diagonal() const {
  return causal || alibi || window_left != kUnbounded || window_right != kUnbounded;
}

Index4 shape_of(const Problem& p, TensorId id) {
  switch (id) {
    case TensorId::q: return {p.batch, p.query_heads, p.query_length, p.key_dim};
    case TensorId::k: return {p.batch, p.key_heads, p.key_length, p.key_dim};
    case TensorId::v: return {p.batch, p.key_heads, p.key_length, p.value_dim};
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
  return checked_extent(shape_of(p, id), strides_of(p, id), p.tensor(id).offset);
}

std::optional<Fault> find_fault(const Problem& p) {
  if (p.key_heads == 0 ? p.query_heads != 0 : p.query_heads % p.key_heads != 0) {
    return Fault{"heads", std::to_string(p.key_heads) + " key heads do not divide " +
                              std::to_string(p.query_heads) + " query heads"};
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

std::optional<std::string> beyond_this_version(const Problem& p) {
  const auto beyond = [](std::string_view what) {
    return std::string(what) + " is in the grammar, but this version's reference does not compute it";
  };
  if (p.dtype == DType::f16 || p.dtype == DType::bf16) return beyond("dtype=" + std::string(name_of(p.dtype)));
  if (p.mask_dtype() == DType::f16 || p.mask_dtype() == DType::bf16) return beyond("a 16-bit mask");
  if (p.prefix != 0) return beyond("prefix");
  if (p.lengths) return beyond("lengths");
  if (p.segments) return beyond("segments");
  if (p.blocks) return beyond("blocks");
  if (p.softcap) return beyond("softcap");
  if (p.alibi) return beyond("alibi");
  if (p.sinks) return beyond("sinks");
  if (p.dropout != 0) return beyond("dropout");
  if (p.past != 0) return beyond("past");
  if (p.page_size) return beyond("paged");
  for (Output output : p.outputs) {
    if (output != Output::o && output != Output::lse) {
      return beyond("out=" + std::string(kOutputNames[static_cast<std::size_t>(output)]));
    }
  }
  for (const TensorSpec& tensor : p.tensors) {
    const Layout layout = tensor.layout.value_or(p.layout);
    if (layout == Layout::qkv || layout == Layout::kv) {
      return beyond("layout=" + std::string(kLayoutNames[static_cast<std::size_t>(layout)]));
    }
  }
  return std::nullopt;
}

double dense_multiply_adds(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length) *
         static_cast<double>(p.key_length) * static_cast<double>(p.key_dim + p.value_dim);
}

}  // namespace attest

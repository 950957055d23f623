#include "harness/speed/trust/column_signs.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "harness/cases/fill.h"
#include "reference/call/tensor_place.h"

namespace attest {
namespace {

/// Whether no two columns of an input share storage. Rows, heads and batches may.
bool has_separate_columns(const Call& call, TensorId id) {
  if (!has_tensor(call, id)) return true;
  const TensorPlace place = place_of(call, id);
  Index4 shape = place.shape;
  if (!place.starts.empty()) {
    shape[0] = 1;
    shape[2] = place.starts.back();
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (place.strides[axis] == 0) shape[axis] = std::min<std::int64_t>(shape[axis], 1);
  }
  return is_injective(shape, place.strides);
}

std::vector<char> drawn(std::int64_t columns, std::uint64_t seed, std::uint64_t stream, bool separate) {
  std::vector<char> signs(static_cast<std::size_t>(columns));
  for (std::size_t n = 0; n < signs.size(); ++n)
    signs[n] = static_cast<char>(hash_words(seed, stream, separate ? n : 0) >> 63);
  return signs;
}

bool all_separate(const Call& call, std::initializer_list<TensorId> ids) {
  return std::ranges::all_of(ids, [&](TensorId id) { return has_separate_columns(call, id); });
}

/// A number with the other sign where `negated` is 1: an integer, or the bits of a floating number.
template <class Bits>
Bits with_sign(Bits number, char negated) {
  if constexpr (std::is_signed_v<Bits>)
    return static_cast<Bits>(negated != 0 ? -number : number);
  else
    return static_cast<Bits>(number ^ (Bits(negated) << (8 * sizeof(Bits) - 1)));
}

/// Every number of the tensor's memory.
template <class Bits>
void negate_all(TensorBytes& memory) {
  for (const ByteRange& range : memory.used()) {
    for (std::size_t at = range.first / sizeof(Bits); (at + 1) * sizeof(Bits) <= range.end; ++at) {
      Bits bits;
      std::memcpy(&bits, memory.data() + at * sizeof(Bits), sizeof(Bits));
      bits = with_sign(bits, 1);
      std::memcpy(memory.data() + at * sizeof(Bits), &bits, sizeof(Bits));
    }
  }
}

/// Calls visit(the number of its first element) for each row in storage, once.
template <class Visit>
void each_row(const TensorPlace& place, const Visit& visit) {
  const auto times = [&](std::size_t axis) {
    return place.strides[axis] == 0 ? std::min<std::int64_t>(place.shape[axis], 1) : place.shape[axis];
  };
  const std::int64_t batches = place.starts.empty() ? times(0) : place.shape[0];
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::int64_t rows = place.strides[2] == 0 ? times(2) : place.rows(b);
    for (std::int64_t h = 0; h < times(1); ++h) {
      for (std::int64_t l = 0; l < rows; ++l) visit(place.element(b, h, l, 0));
    }
  }
}

/// Columns for which `which` is not 0, each element once.
template <class Bits>
void negate_columns(TensorStorage& tensor, const std::vector<char>& which) {
  each_row(tensor.place(), [&](std::int64_t first) {
    auto* const row = reinterpret_cast<Bits*>(tensor.memory().data()) + first;
    for (std::size_t d = 0; d < which.size(); ++d) {
      Bits& number = row[static_cast<std::int64_t>(d) * tensor.place().strides[3]];
      number = with_sign(number, which[d]);
    }
  });
}

template <class Bits>
void negate(TensorStorage& tensor, const std::vector<char>& which) {
  if (std::ranges::all_of(which, [](char one) { return one != 0; }))
    negate_all<Bits>(tensor.memory());
  else if (std::ranges::any_of(which, [](char one) { return one != 0; }))
    negate_columns<Bits>(tensor, which);
}

/// Of 4 bits, in dense rows; the integer that has no negative becomes the largest one.
void negate_codes(TensorStorage& tensor, const std::vector<char>& which) {
  std::byte* const bytes = tensor.memory().data();
  each_row(tensor.place(), [&](std::int64_t first) {
    for (std::size_t d = 0; d < which.size(); ++d) {
      const std::int64_t at = first + static_cast<std::int64_t>(d);
      if (which[d] != 0) store(bytes, tensor.dtype(), at, -load(bytes, tensor.dtype(), at));
    }
  });
}

}  // namespace

ColumnSigns::ColumnSigns(const Call& call, std::uint64_t seed)
    // Key dimensions are rows of a state, which one sign negates as a whole.
    : key_(drawn(call.key_dim, seed, 1,
                 call.has_scores() && !call.latent &&
                     all_separate(call, {TensorId::q, TensorId::k, TensorId::past_k, TensorId::new_k}))),
      value_(drawn(call.value_dim, seed, 2,
                   !call.latent && all_separate(call, {TensorId::v, TensorId::past_v, TensorId::new_v, TensorId::state,
                                                       TensorId::dpresent, TensorId::dout}))),
      loss_(hash_words(seed, 3, 0) >> 63) {}

bool ColumnSigns::of_key(std::int64_t column) const {
  return !key_.empty() && key_[static_cast<std::size_t>(column)] != 0;
}

bool ColumnSigns::of_value(std::int64_t column) const {
  return !value_.empty() && value_[static_cast<std::size_t>(column)] != 0;
}

bool ColumnSigns::negates(TensorId id, std::int64_t column) const {
  switch (id) {
    case TensorId::q:
    case TensorId::k:
    case TensorId::past_k:
    case TensorId::new_k:
    case TensorId::cache_k:
    case TensorId::present_k: return of_key(column);
    case TensorId::v:
    case TensorId::past_v:
    case TensorId::new_v:
    case TensorId::cache_v:
    case TensorId::saved_o:
    case TensorId::out:
    case TensorId::present_v: return of_value(column);
    case TensorId::dq:
    case TensorId::dk: return of_key(column) != loss_;
    case TensorId::dout:
    case TensorId::dv: return of_value(column) != loss_;
    case TensorId::state:
    case TensorId::present_state: return of_key(0) != of_value(column);
    case TensorId::dpresent:
    case TensorId::dstate: return (of_key(0) != of_value(column)) != loss_;
    case TensorId::dlse:
    case TensorId::dmask:
    case TensorId::dsinks:
    case TensorId::ddecay:
    case TensorId::dbeta: return loss_;
    default: return false;
  }
}

void change_signs(CaseInputs& inputs, const ColumnSigns& from, const ColumnSigns& to) {
  for (const TensorId id : inputs.list()) {
    TensorStorage& tensor = inputs.at(id);
    std::vector<char> which(static_cast<std::size_t>(tensor.shape()[3]));
    for (std::size_t d = 0; d < which.size(); ++d) {
      const auto column = static_cast<std::int64_t>(d);
      which[d] = from.negates(id, column) != to.negates(id, column);
    }
    if (which.empty() || tensor.bytes() == 0) continue;
    if (!is_storage(tensor.dtype())) continue;  // booleans and indices keep theirs
    if (is_packed_in_pairs(tensor.dtype())) {
      negate_codes(tensor, which);
      continue;
    }
    switch (size_of(tensor.dtype())) {
      case 8: negate<std::uint64_t>(tensor, which); break;
      case 4: negate<std::uint32_t>(tensor, which); break;
      case 2: negate<std::uint16_t>(tensor, which); break;
      default:
        if (is_floating(tensor.dtype()))
          negate<std::uint8_t>(tensor, which);
        else
          negate<std::int8_t>(tensor, which);
    }
  }
}

}  // namespace attest

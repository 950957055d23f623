#include "harness/cases/other_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "reference/arithmetic/arithmetic.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

/// A bit for each place, about as often 0 as 1; 0 at the first.
bool bit_of(std::size_t at) { return (static_cast<std::uint32_t>(at) * 0x9e3779b9u) >> 31; }

/// Calls change(bits, at) for each element of the memory that is used, padding included; `Bits` is as large as one.
template <class Bits, class Change>
void each_element(TensorBytes& memory, const Change& change) {
  for (const ByteRange& range : memory.used()) {
    for (std::size_t at = range.first / sizeof(Bits); (at + 1) * sizeof(Bits) <= range.end; ++at) {
      Bits bits;
      std::memcpy(&bits, memory.data() + at * sizeof(Bits), sizeof(Bits));
      bits = change(bits, at);
      std::memcpy(memory.data() + at * sizeof(Bits), &bits, sizeof(Bits));
    }
  }
}

/// Calls visit(Bits{}, bits of the exponent, its lowest bit) for the type.
template <class Visit>
void with_format(DType dtype, const Visit& visit) {
  const auto with_bits = [&](auto zero) {
    using Bits = decltype(zero);
    const auto unit = static_cast<Bits>(Bits{1} << format_of(dtype).mantissa_bits);
    visit(zero, static_cast<Bits>(unit * ((Bits{1} << format_of(dtype).exponent_bits) - 1)), unit);
  };
  if (!is_floating(dtype)) return;
  switch (size_of(dtype)) {
    case 8: return with_bits(std::uint64_t{});
    case 4: return with_bits(std::uint32_t{});
    case 2: return with_bits(std::uint16_t{});
    default: return with_bits(std::uint8_t{});
  }
}

/// Of codes of 4 bits; what can't be halved without rounding keeps its size.
void halve_pairs(TensorStorage& tensor, bool negate) {
  std::array<std::uint8_t, 16> halves{};
  for (std::uint8_t code = 0; code < 16; ++code) {
    std::array<std::uint8_t, 8> bytes{code};  // as long as any element
    const double number = load(bytes.data(), tensor.dtype(), 0), half = as_stored(tensor.dtype(), number / 2);
    const double size = half * 2 == number ? half : number;
    store(bytes.data(), tensor.dtype(), 0, negate ? -size : size);
    halves[code] = bytes[0] & 0xf;
  }
  each_element<std::uint8_t>(tensor.memory(), [&](std::uint8_t pair, std::size_t) {
    return static_cast<std::uint8_t>(halves[pair & 0xf] | halves[pair >> 4] << 4);
  });
}

/// Halves every number and, with `negate`, changes its sign if it has one; on the bits, since large cases have many.
/// Infinities and NaN keep their kind, the smallest numbers their size.
void halve(TensorStorage& tensor, bool negate) {
  if (is_packed_in_pairs(tensor.dtype())) return halve_pairs(tensor, negate);
  if (tensor.dtype() == DType::i8) {
    each_element<std::int8_t>(tensor.memory(), [=](std::int8_t number, std::size_t) {
      const int half = number / 2 == 0 ? number : number / 2;
      return static_cast<std::int8_t>(negate ? -half : half);
    });
    return;
  }
  with_format(tensor.dtype(), [&](auto zero, auto exponent, auto unit) {
    using Bits = decltype(zero);
    const bool has_sign = lowest_of(tensor.dtype()) < 0;
    const auto sign = static_cast<Bits>(negate && has_sign ? Bits{1} << (8 * sizeof(Bits) - 1) : 0);
    each_element<Bits>(tensor.memory(), [=](Bits bits, std::size_t) {
      const auto power = static_cast<Bits>(bits & exponent);
      if (power > unit && power != exponent) bits = static_cast<Bits>(bits - unit);
      return static_cast<Bits>(bits ^ sign);
    });
  });
}

/// Lists name the keys at the other end of their sequence.
void mirror_indices(const Call& call, TensorStorage& indices) {
  each_index(indices.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t n) {
    if (i >= indices.place().rows(b)) return;
    const double number = load(indices.memory().data(), indices.dtype(), indices.place().element(b, h, i, n));
    if (number >= 0) indices.set(b, h, i, n, static_cast<double>(selectable(call, b)) - 1 - number);
  });
}

bool other_visibility(bool visible, std::size_t at) { return !visible || bit_of(at); }

/// Bytes that are 0 or 1: hidden ones become visible, of the visible ones some hidden.
void change_visibility(TensorStorage& tensor) {
  each_element<std::uint8_t>(tensor.memory(), [](std::uint8_t byte, std::size_t at) {
    return static_cast<std::uint8_t>(other_visibility(byte != 0, at));
  });
}

/// What hides becomes 0, and of the other numbers some hide.
void change_additive(TensorStorage& mask) {
  halve(mask, true);  // a hiding -inf is +inf now
  with_format(mask.dtype(), [&](auto zero, auto exponent, auto) {
    using Bits = decltype(zero);
    const auto minus_infinity = static_cast<Bits>(exponent | (Bits{1} << (8 * sizeof(Bits) - 1)));
    each_element<Bits>(mask.memory(), [=](Bits bits, std::size_t at) {
      if (bits == exponent) return Bits{0};
      const bool is_nan = static_cast<Bits>(bits & exponent) == exponent;  // padding
      return is_nan || other_visibility(true, at) ? bits : minus_infinity;
    });
  });
}

/// One element of keys or values: NaN where it was a number, a number where it was NaN.
void toggle_nan(TensorStorage& tensor, std::int64_t b, std::int64_t h) {
  const TensorPlace& place = tensor.place();
  const bool empty = std::any_of(place.shape.begin(), place.shape.end(), [](std::int64_t n) { return n == 0; });
  if (empty || (!place.starts.empty() && place.starts.back() == 0)) return;
  const bool was_nan = std::isnan(load(tensor.memory().data(), tensor.dtype(), place.element(b, h, 0, 0)));
  tensor.set(b, h, 0, 0, was_nan ? 1 : kNaN);
}

}  // namespace

void change_data(const Call& call, CaseInputs& inputs) {
  const Index4 keys = inputs.at(TensorId::k).shape();  // zeros where the operator has none
  for (const TensorId id : inputs.list()) {
    TensorStorage& tensor = inputs.at(id);
    switch (id) {
      case TensorId::q:
      case TensorId::k:
      case TensorId::v:
      case TensorId::past_k:
      case TensorId::past_v:
      case TensorId::new_k:
      case TensorId::new_v:
      case TensorId::q_rope:
      case TensorId::k_rope:
      case TensorId::q_scales:
      case TensorId::k_scales:
      case TensorId::v_scales:
      case TensorId::part_o:
      case TensorId::dout:
      case TensorId::dlse:
      case TensorId::dpresent: halve(tensor, true); break;
      case TensorId::part_lse: change_additive(tensor); break;  // other parts are empty
      case TensorId::mask:
        if (call.mask->additive) {
          change_additive(tensor);
          break;
        }
        [[fallthrough]];
      case TensorId::blocks:
      case TensorId::keep: change_visibility(tensor); break;
      case TensorId::page_table:
        each_element<std::int32_t>(tensor.memory(),
                                   [last = static_cast<std::int32_t>(keys[0]) - 1](std::int32_t page, auto) {
                                     return page < 0 ? page : last - page;
                                   });
        break;
      case TensorId::q_positions:
      case TensorId::k_positions:
        each_element<std::int32_t>(
            tensor.memory(), [last = static_cast<std::int32_t>(call.rope_positions) - 1](std::int32_t position, auto) {
              return position < 0 || position > last ? position : last - position;  // padding stays as it is
            });
        break;
      case TensorId::sinks:
        if (!call.sink_values.empty()) break;
        each_element<double>(tensor.memory(), [](double sink, std::size_t) { return sink == 0 ? 1 : -sink; });
        break;
      case TensorId::indices: mirror_indices(call, tensor); break;
      case TensorId::slopes:
      case TensorId::past_lengths:
      case TensorId::query_lengths:
      case TensorId::key_lengths: break;
      default: halve(tensor, false);  // a decay stays one
    }
  }
  for (const TensorId id : {TensorId::v, TensorId::part_o}) {
    if (inputs.has(id)) toggle_nan(inputs.at(id), 0, 0);
  }
  // A NaN in a key takes all scores of its head: only where there is another head, which then keeps its numbers.
  if (keys[0] * keys[1] > 1 && inputs.at(TensorId::k).place().starts.empty()) {
    toggle_nan(inputs.at(TensorId::k), keys[0] - 1, keys[1] - 1);
  }
}

void copy_data(const CaseInputs& from, CaseInputs& to) {
  for (const TensorId id : from.list()) to.at(id).memory().copy_from(from.at(id).memory());
}

bool same_data(const CaseInputs& a, const CaseInputs& b) {
  return std::ranges::all_of(a.list(), [&](TensorId id) { return a.at(id).memory() == b.at(id).memory(); });
}

}  // namespace attest

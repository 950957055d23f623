#include "harness/cases/other_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "reference/arithmetic/arithmetic.h"

namespace attest {
namespace {

constexpr auto kTensors = {&CaseInputs::q,    &CaseInputs::k,      &CaseInputs::v,
                           &CaseInputs::mask, &CaseInputs::past_k, &CaseInputs::past_v};

/// A bit for each place, about as often 0 as 1; 0 at the first.
bool bit_of(std::size_t at) { return (static_cast<std::uint32_t>(at) * 0x9e3779b9u) >> 31; }

/// Calls change(bits, at) for each element of the memory that is used, padding included; `Bits` is unsigned and as
/// large as one.
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
  switch (dtype) {
    case DType::f64: return visit(std::uint64_t{}, std::uint64_t{0x7ff0000000000000}, std::uint64_t{1} << 52);
    case DType::f32: return visit(std::uint32_t{}, std::uint32_t{0x7f800000}, std::uint32_t{1} << 23);
    case DType::f16: return visit(std::uint16_t{}, std::uint16_t{0x7c00}, std::uint16_t{1 << 10});
    case DType::bf16: return visit(std::uint16_t{}, std::uint16_t{0x7f80}, std::uint16_t{1 << 7});
  }
}

/// Halves every number and, with `negate`, changes its sign; on the bits, since large cases have many. Infinities and
/// NaN keep their kind, the smallest numbers their size.
void halve(TensorStorage& tensor, bool negate) {
  with_format(tensor.dtype(), [&](auto zero, auto exponent, auto unit) {
    using Bits = decltype(zero);
    const auto sign = static_cast<Bits>(negate ? Bits{1} << (8 * sizeof(Bits) - 1) : 0);
    each_element<Bits>(tensor.memory(), [=](Bits bits, std::size_t) {
      const auto power = static_cast<Bits>(bits & exponent);
      if (power > unit && power != exponent) bits = static_cast<Bits>(bits - unit);
      return static_cast<Bits>(bits ^ sign);
    });
  });
}

bool other_visibility(bool visible, std::size_t at) { return !visible || bit_of(at); }

/// Bytes that are 0 or 1: hidden ones become visible, of the visible ones some hidden.
void change_visibility(std::span<std::uint8_t> bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = other_visibility(bytes[at] != 0, at);
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
  for (TensorStorage* tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.past_k, &inputs.past_v}) halve(*tensor, true);
  for (TensorStorage& tensor : inputs.extra) halve(tensor, false);  // a decay stays one
  toggle_nan(inputs.v, 0, 0);
  // A NaN in a key takes all scores of its head: only where there is another head, which then keeps its numbers.
  const Index4& n = inputs.k.shape();
  if (n[0] * n[1] > 1 && inputs.k.place().starts.empty()) toggle_nan(inputs.k, n[0] - 1, n[1] - 1);
  if (inputs.has_mask && inputs.additive) change_additive(inputs.mask);
  if (inputs.has_mask && !inputs.additive) {
    each_element<std::uint8_t>(inputs.mask.memory(), [](std::uint8_t byte, std::size_t at) {
      return static_cast<std::uint8_t>(other_visibility(byte != 0, at));
    });
  }
  change_visibility(inputs.blocks);
  change_visibility(inputs.keep);
  for (std::int32_t& page : inputs.pages) {
    if (page >= 0) page = static_cast<std::int32_t>(n[0]) - 1 - page;
  }
  if (!call.sink_values.empty()) return;
  for (double& sink : inputs.sinks) sink = sink == 0 ? 1 : -sink;
}

void copy_data(const CaseInputs& from, CaseInputs& to) {
  const auto copy = [](const auto& source, auto&& target) { std::copy(source.begin(), source.end(), target.begin()); };
  for (const auto tensor : kTensors) {
    (to.*tensor).memory().copy_from((from.*tensor).memory());
  }
  for (std::size_t n = 0; n < from.extra.size(); ++n) to.extra[n].memory().copy_from(from.extra[n].memory());
  copy(from.pages, to.pages);
  copy(from.blocks, to.blocks);
  copy(from.keep, to.keep);
  copy(from.sinks, to.sinks);
  copy(from.slopes, to.slopes);
}

bool same_data(const CaseInputs& a, const CaseInputs& b) {
  // Bytes, since a NaN is no other than itself here.
  const auto same = [](const auto& x, const auto& y) {
    return std::ranges::equal(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  };
  const auto same_tensor = [](const TensorStorage& x, const TensorStorage& y) { return x.memory() == y.memory(); };
  return std::ranges::all_of(kTensors, [&](const auto tensor) { return same_tensor(a.*tensor, b.*tensor); }) &&
         std::ranges::equal(a.extra, b.extra, same_tensor) && same(a.pages, b.pages) && same(a.blocks, b.blocks) &&
         same(a.keep, b.keep) && same(a.sinks, b.sinks) && same(a.slopes, b.slopes);
}

}  // namespace attest

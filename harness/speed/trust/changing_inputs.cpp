#include "harness/speed/trust/changing_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>

#include "harness/base/stopwatch.h"
#include "harness/cases/other_data.h"

namespace attest {

double last_level_cache_bytes() {
  // The kernel knows what this processor shares; the C library may tell the whole package's.
  double largest = 0;
  for (const char* index : {"index2", "index3", "index4"}) {
    std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/") + index + "/size");  // "32768K"
    double size = 0;
    char unit = 0;
    if (file >> size >> unit) largest = std::max(largest, size * (unit == 'M' ? 0x1p20 : 0x1p10));
  }
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (largest == 0)
    largest = static_cast<double>(std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE)));
#endif
  return largest;
}

namespace {

/// The bits that change of one tensor's numbers, eight bytes at a time: none of run 0, which is the case as written.
class Flips {
 public:
  struct Origin {
    std::uint64_t seed, run, part;
  };
  explicit Flips(const Origin& origin)
      : state_((origin.seed ^ origin.part * 0xbf58476d1ce4e5b9u) + origin.run),
        used_(origin.run == 0 ? 0 : ~std::uint64_t{0}),
        count_(origin.run % 4) {}

  std::uint64_t drawn() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t bits = (state_ ^ (state_ >> 32)) * 0xd6e8feb86659fd93u;
    bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u;
    return (bits ^ (bits >> 32)) & used_;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t state_, used_, count_;
};

/// The sign and `low` bits at the end of a number, but for the two last.
template <class Bits>
constexpr Bits drawn_bits(int low) {
  const auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  return static_cast<Bits>(sign | (((Bits{1} << low) - 1) & ~Bits{3}));
}

/// Bits of `drawn` change in numbers of this layout, and the two last ones by the count of runs.
template <class Bits>
void flip(TensorBytes& memory, Bits exponent, Bits drawn, Flips from, Flips to) {
  constexpr int kWidth = 8 * sizeof(Bits), kLanes = 64 / kWidth;
  const auto count = static_cast<Bits>(from.count() ^ to.count());
  for (const ByteRange& range : memory.used()) {
    const std::size_t end = range.end / sizeof(Bits) * sizeof(Bits);
    for (std::size_t at = range.first / sizeof(Bits) * sizeof(Bits); at < end; at += 8) {
      const std::uint64_t flips = from.drawn() ^ to.drawn();
      Bits lanes[kLanes] = {};
      const std::size_t size = std::min<std::size_t>(8, end - at);
      std::memcpy(lanes, memory.data() + at, size);
      for (int n = 0; n < kLanes; ++n) {
        const auto power = static_cast<Bits>(lanes[n] & exponent);
        const bool whole = power != 0 && power != exponent;  // which no flip changes
        const auto change = static_cast<Bits>((static_cast<Bits>(flips >> (n * kWidth)) & drawn) ^ count);
        lanes[n] = static_cast<Bits>(lanes[n] ^ (whole ? change : Bits{0}));
      }
      std::memcpy(memory.data() + at, lanes, size);
    }
  }
}

void change_numbers(TensorStorage& tensor, const Flips::Origin& from, const Flips::Origin& to) {
  const Flips a(from), b(to);
  const Format& format = format_of(tensor.dtype());
  // The last bits of integers that are neither small nor nearly the largest.
  if (format.type == DType::i8) return flip<std::uint8_t>(tensor.memory(), 0x7c, 0, a, b);
  if (format.exponent_bits == 0 || is_packed_in_pairs(format.type)) return;  // of 4 bits signs alone change
  const std::uint64_t exponent = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  // Of the mantissa all bits but the first dozen, or a third of them.
  switch (format.bits) {
    case 64: return flip(tensor.memory(), exponent, drawn_bits<std::uint64_t>(41), a, b);
    case 32: return flip(tensor.memory(), static_cast<std::uint32_t>(exponent), drawn_bits<std::uint32_t>(12), a, b);
    case 16:
      return flip(tensor.memory(), static_cast<std::uint16_t>(exponent),
                  drawn_bits<std::uint16_t>(format.mantissa_bits / 3), a, b);
    default: return flip(tensor.memory(), static_cast<std::uint8_t>(exponent), drawn_bits<std::uint8_t>(0), a, b);
  }
}

constexpr std::array kRedrawn = {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v};
/// What a run reads of numbers: those, and what gradients have besides.
constexpr std::array kCounted = {TensorId::q,         TensorId::k,      TensorId::v,        TensorId::past_k,
                                 TensorId::past_v,    TensorId::part_o, TensorId::part_lse, TensorId::saved_o,
                                 TensorId::saved_lse, TensorId::dout,   TensorId::dlse,     TensorId::new_k,
                                 TensorId::new_v,     TensorId::q_rope, TensorId::k_rope};

/// Gives all numbers of a case other signs and last bits.
void redraw_numbers(CaseInputs& data, const Flips::Origin& from, const Flips::Origin& to) {
  std::uint64_t part = 0;
  const auto change = [&](TensorStorage& tensor) {
    if (tensor.bytes() > 0) change_numbers(tensor, {from.seed, from.run, part}, {to.seed, to.run, part});
    ++part;
  };
  for (const TensorId id : kRedrawn) change(data.at(id));
  // Numbers on both sides of 0 may change their signs: a state, but no decay.
  for (const TensorId id : data.list()) {
    const std::optional<DrawnNumbers>& drawn = row_of(id).drawn;
    if (drawn && drawn->low < 0 && drawn->high > 0) change(data.at(id));
  }
  for (const TensorId id : {TensorId::dout, TensorId::new_k, TensorId::new_v, TensorId::q_rope, TensorId::k_rope})
    change(data.at(id));
}

}  // namespace

CaseInputs redrawn(const Problem& problem, const CaseInputs& inputs, std::uint64_t seed, int threads) {
  CaseInputs data = inputs;
  redraw_numbers(data, {0, 0, 0}, {seed, 1, 0});
  if (data.has(TensorId::saved_o)) save_forward(problem, data, threads);
  return data;
}

ChangingInputs::ChangingInputs(const CaseInputs& inputs, std::uint64_t seed) : random_(seed) {
  sets_.resize(sets_for(inputs));
  for (Set& set : sets_) {
    set.shown = set.kept = inputs;
    set.views = set.shown.views();
  }
}

ChangingInputs::ChangingInputs(const Call& call, const std::array<const CaseInputs*, 2>& known, std::uint64_t seed)
    : random_(seed), call_(call), known_(known) {
  sets_.resize(sets_for(*known[0]));
  for (std::size_t n = 0; n < sets_.size(); ++n) {
    Set& set = sets_[n];
    set.shown = set.kept = *known[n];
    set.views = set.shown.views();
    set.shown_as.known = set.kept_as.known = n;
  }
}

std::size_t ChangingInputs::sets_for(const CaseInputs& inputs) {
  for (const TensorId id : kCounted) set_bytes_ += static_cast<double>(inputs.at(id).bytes());
  const double cache = last_level_cache_bytes();
  const bool only_one_fits = set_bytes_ <= cache && 2 * set_bytes_ > cache;
  return only_one_fits ? 1 : 2;
}

const Inputs& ChangingInputs::next() {
  turn_ = (turn_ + 1) % sets_.size();
  Set& set = sets_[turn_];
  Draw draw{random_(), ++changes_};
  if (call_) draw.known = sets_.size() > 1 ? turn_ : random_() % known_.size();
  seconds_ += timed([&] { redraw(set.shown, set.shown_as, draw); });
  set.shown_as = draw;
  return set.views;
}

const Inputs& ChangingInputs::stage(const CaseInputs& data) {
  turn_ = (turn_ + 1) % sets_.size();
  staged_ = &data;
  copy_data(data, sets_[turn_].shown);
  return sets_[turn_].views;
}

const CaseInputs& ChangingInputs::kept() { return staged_ ? *staged_ : kept(sets_[turn_]); }

const CaseInputs& ChangingInputs::kept(Set& set) {
  if (set.kept_as.run != set.shown_as.run) redraw(set.kept, set.kept_as, set.shown_as);
  set.kept_as = set.shown_as;
  return set.kept;
}

bool ChangingInputs::intact() { return same_data(sets_[turn_].shown, kept()); }

bool ChangingInputs::all_intact() {
  return intact() && std::all_of(sets_.begin(), sets_.end(),
                                 [&](Set& set) { return &set == &sets_[turn_] || same_data(set.shown, kept(set)); });
}

void ChangingInputs::restore() {
  staged_ = nullptr;
  for (Set& set : sets_) copy_data(kept(set), set.shown);
}

void ChangingInputs::redraw(CaseInputs& data, const Draw& from, const Draw& to) const {
  if (!call_) return redraw_numbers(data, {from.seed, from.run, 0}, {to.seed, to.run, 0});
  if (from.known == to.known) return change_signs(data, signs_of(from), signs_of(to));
  copy_data(*known_[to.known], data);
  change_signs(data, {}, signs_of(to));
}

ColumnSigns ChangingInputs::signs_of(const Draw& draw) const {
  return call_ && draw.run > 0 ? ColumnSigns(*call_, draw.seed) : ColumnSigns();
}

}  // namespace attest

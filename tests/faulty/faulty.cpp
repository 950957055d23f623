#include "tests/faulty/faulty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reference/call/tensor_table.h"
#include "tests/faulty/around.h"
#include "tests/faulty/linear_gradients.h"
#include "tests/faulty/linear_states.h"
#include "tests/faulty/stateful.h"
#include "tests/faulty/tampered.h"
#include "tests/faulty/tampered_launches.h"

namespace attest::faulty {
namespace {

enum class Fault {
  none,
  mask_off_by_one,
  missing_scale,
  scale_by_dim,
  unshifted_softmax,
  nan_on_empty_row,
  heads_tiled,
  wrong_corner,
  tail_keys_counted,
  ignored_mask,
  writes_past_the_end,
  finite_minimum_hides,
  hidden_nan_leaks,
  band_start_nan,
  ignores_strides,
  mask_broadcast_offset,
  stride_zero_tail,
  window_ignored_without_mask,
  right_zero_is_unbounded,
  window_off_by_one,
  finite_sentinel,
  lse_in_base_2,
  lse_plus_infinity,
  scale_ignored_when_given,
  stale_output,
  all_zeros,
  no_output,
  throws_now_and_then,
  cap_after_mask,
  weights_in_half,
  fast_path_nan,
  few_key_heads,
  finite_math,
  zero_stride_batches,
  mask_index_wraps,
  first_tile_minimum,
  mask_on_the_diagonal_alone,
  mask_by_key_head,
  mask_as_length,
  mask_of_eight_batches,
  mask_clipped,
  zero_weights_skipped,
  count
};

struct Description {
  std::string_view name, text;
};

constexpr std::array<Description, static_cast<std::size_t>(Fault::count)> kDescriptions = {{
    {"correct", "the same loops without a mistake"},
    {"mask_off_by_one", "causal shows one key too many"},
    {"missing_scale", "scores are not scaled"},
    {"scale_by_dim", "1/d instead of 1/sqrt(d)"},
    {"unshifted_softmax", "exp(s) without subtracting the maximum"},
    {"nan_on_empty_row", "0/0 where nothing is visible (1, 3)"},
    {"heads_tiled", "head h uses key head h mod Hkv (17)"},
    {"wrong_corner", "the diagonal at the other corner (15)"},
    {"tail_keys_counted", "keys padded to a tile of 32 are counted (27)"},
    {"ignored_mask", "the mask tensor is accepted and ignored (26)"},
    {"writes_past_the_end", "one element beyond the output is written"},
    {"finite_minimum_hides", "the smallest finite number taken for -inf (2)"},
    {"hidden_nan_leaks", "0 * NaN of hidden keys enters the sum (5)"},
    {"band_start_nan", "-inf minus -inf when the first tile is hidden (6, 7)"},
    {"ignores_strides", "inputs read as if they were contiguous (8, 9)"},
    {"mask_broadcast_offset", "a mask's broadcast batch axis is stepped over (10)"},
    {"stride_zero_tail", "stride 0 is wrong at Lk mod 32 = 1 (11)"},
    {"window_ignored_without_mask", "a window counts only beside a mask (19)"},
    {"right_zero_is_unbounded", "window right = 0 read as no limit (20)"},
    {"window_off_by_one", "left = W shows W keys (21)"},
    {"finite_sentinel", "-5e4 stands for the maximum of nothing (22)"},
    {"lse_in_base_2", "lse in log2 (23)"},
    {"lse_plus_infinity", "lse of an empty row is +inf (23)"},
    {"scale_ignored_when_given", "scale=... is accepted and dropped (26)"},
    {"stale_output", "every other call returns the result before (29, 34)"},
    {"all_zeros", "the output is never computed (33)"},
    {"no_output", "the output is never written"},
    {"throws_now_and_then", "throws for an odd number of keys"},
    {"cap_after_mask", "softcap after the mask lets masked keys in (16)"},
    {"weights_in_half", "weights rounded to f16, undeclared"},
    {"fast_path_nan", "beyond 256 keys another path gives NaN for an empty row (4)"},
    {"few_key_heads", "fewer than 8 key heads: the last one reads the first (14)"},
    {"finite_math", "-inf in a mask compiled away: the key counts (28)"},
    {"zero_stride_batches", "keys with batch stride 0 are shifted by the batch (30)"},
    {"mask_index_wraps", "the mask's offset is a 32-bit number (12)"},
    {"first_tile_minimum", "a first tile of the smallest finite number counts as hidden (70)"},
    {"mask_on_the_diagonal_alone", "with causal, a mask counts in tiles on the diagonal alone (72)"},
    {"mask_by_key_head", "a mask is read by key heads (75)"},
    {"mask_as_length", "a mask of keys is taken for their number (78)"},
    {"mask_of_eight_batches", "the ninth sequence has the first one's mask (80)"},
    {"mask_clipped", "a mask's numbers are cut at 10"},
    {"zero_weights_skipped", "a key whose weight is 0 is left out, and the NaN of its value (122)"},
}};

template <class Real>
class FaultyPlan : public Plan {
 public:
  FaultyPlan(const Call& problem, Fault fault, std::vector<double>& last) : p_(problem), fault_(fault), last_(last) {}

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    if (fault_ == Fault::ignores_strides) {
      for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
        ConstTensor& t = inputs_.change(id);
        const Index4& n = t.shape;
        const Index4 dense = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
        // Never beyond what was given: the mistake is a wrong number, not a crash.
        for (std::size_t axis = 0; axis < 4; ++axis) t.strides[axis] = std::min(t.strides[axis], dense[axis]);
      }
    }
    if (fault_ == Fault::mask_broadcast_offset && inputs_.mask() && inputs_.mask()->strides[0] == 0 &&
        inputs_.mask()->strides[1] != 0 && p_.query_heads > 1) {
      shift_heads_ = true;
    }
  }

  void run() override {
    if (fault_ == Fault::throws_now_and_then && p_.key_length % 2 == 1) throw BackendError("odd number of keys");
    out_.assign(static_cast<std::size_t>(p_.batch * p_.query_heads * p_.query_length * p_.value_dim), Real{0});
    lse_.assign(static_cast<std::size_t>(p_.batch * p_.query_heads * p_.query_length), Real{0});
    if (fault_ == Fault::all_zeros) return;
    std::size_t row = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.query_length; ++i) attend(b, h, i, row++);
      }
    }
    if (fault_ == Fault::stale_output) keep_last();
  }

  void download(const Outputs& outputs) override {
    if (fault_ == Fault::no_output) return;
    const View<Real> out = outputs.out().as<Real>();
    std::size_t row = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.query_length; ++i, ++row) {
          for (std::int64_t c = 0; c < p_.value_dim; ++c) {
            out(b, h, i, c) = out_[row * static_cast<std::size_t>(p_.value_dim) + static_cast<std::size_t>(c)];
          }
          if (outputs.lse()) outputs.lse()->as<Real>()(b, h, i, 0) = lse_[row];
        }
      }
    }
    if (fault_ == Fault::writes_past_the_end && !out_.empty()) {
      (&out(p_.batch - 1, p_.query_heads - 1, p_.query_length - 1, p_.value_dim - 1))[1] = Real{1};
    }
  }

 private:
  std::int64_t offset() const {
    if (fault_ != Fault::wrong_corner) return p_.diagonal_offset(0);
    return p_.align == Align::bottom_right ? 0 : p_.key_length - p_.query_length;
  }

  bool in_range(std::int64_t i, std::int64_t j) const {
    const std::int64_t diagonal = i + offset();
    if (p_.causal && j > diagonal + (fault_ == Fault::mask_off_by_one ? 1 : 0)) return false;
    if (fault_ == Fault::window_ignored_without_mask && !inputs_.mask()) return true;
    if (p_.window_left != Call::kUnbounded &&
        diagonal - j > p_.window_left - (fault_ == Fault::window_off_by_one ? 1 : 0)) {
      return false;
    }
    if (fault_ == Fault::right_zero_is_unbounded && p_.window_right == 0) return true;
    return p_.window_right == Call::kUnbounded || j - diagonal <= p_.window_right;
  }

  static constexpr std::int64_t kTile = 64;

  /// How many keys a boolean mask of keys shows.
  std::int64_t keys_shown(std::int64_t b, std::int64_t h) const {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      count += static_cast<const std::uint8_t*>(inputs_.mask()->data)[inputs_.mask()->offset(b, h, 0, j)] != 0;
    }
    return count;
  }

  void attend(std::int64_t b, std::int64_t h, std::int64_t i, std::size_t row) {
    const auto q = inputs_.q().as<const Real>(), k = inputs_.k().as<const Real>(), v = inputs_.v().as<const Real>();
    std::int64_t g = fault_ == Fault::heads_tiled ? h % p_.key_heads : h / p_.heads_per_group();
    if (fault_ == Fault::few_key_heads && p_.key_heads < 8 && g + 1 == p_.key_heads) g = 0;
    double scale = p_.scale_value();
    if (fault_ == Fault::missing_scale) scale = 1;
    if (fault_ == Fault::scale_by_dim) scale = 1 / static_cast<double>(p_.key_dim);
    if (fault_ == Fault::scale_ignored_when_given) scale = 1 / std::sqrt(static_cast<double>(p_.key_dim));

    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    const auto keys = static_cast<std::size_t>(p_.key_length);
    std::vector<Real> s(keys, kHidden);
    std::vector<char> seen(keys, 0);
    Real max = fault_ == Fault::finite_sentinel ? Real(-5e4) : kHidden;
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      if (!in_range(i, j)) continue;
      Real bias = 0;
      if (inputs_.mask() && fault_ != Fault::ignored_mask) {
        std::int64_t mask_head = shift_heads_ ? (h + b) % p_.query_heads : h;
        if (fault_ == Fault::mask_by_key_head) mask_head = h / p_.heads_per_group();
        const std::int64_t sequence = fault_ == Fault::mask_of_eight_batches ? b % 8 : b;
        std::int64_t at = inputs_.mask()->offset(sequence, mask_head, i, j);
        if (fault_ == Fault::mask_index_wraps) at = static_cast<std::int64_t>(static_cast<std::uint32_t>(2 * at) / 2);
        if (!is_additive(*inputs_.mask())) {
          if (fault_ == Fault::mask_as_length && !p_.mask->kept[2]) {
            if (j >= keys_shown(b, h)) continue;
          } else if (!static_cast<const std::uint8_t*>(inputs_.mask()->data)[at]) {
            continue;
          }
        } else {
          bias = static_cast<Real>(load(inputs_.mask()->data, inputs_.mask()->dtype, at));
          if (bias == kHidden && fault_ == Fault::finite_math) bias = 0;
          if (fault_ == Fault::mask_clipped) bias = std::min(bias, Real{10});
          if (fault_ == Fault::mask_on_the_diagonal_alone && p_.causal && i / kTile != j / kTile && bias != kHidden)
            bias = 0;
          if (bias == kHidden && !(fault_ == Fault::cap_after_mask && p_.softcap)) continue;
          if (fault_ == Fault::finite_minimum_hides && bias <= Real(-3e38)) continue;
        }
      }
      Real dot = 0;
      const bool shifted = fault_ == Fault::zero_stride_batches && k.strides[0] == 0 && p_.batch > 1;
      const std::int64_t key = shifted ? (j + b) % p_.key_length : j;
      for (std::int64_t t = 0; t < p_.key_dim; ++t) dot += q(b, h, i, t) * k(b, g, key, t);
      Real score = dot * static_cast<Real>(scale);
      if (p_.softcap) {
        const auto cap = static_cast<Real>(*p_.softcap);
        score = fault_ == Fault::cap_after_mask ? cap * std::tanh((score + bias) / cap) - bias
                                                : cap * std::tanh(score / cap);
        if (bias == kHidden) {  // tanh(-inf) = -1: the key is back
          score = -cap;
          bias = 0;
        }
      }
      s[static_cast<std::size_t>(j)] = score + bias;
      seen[static_cast<std::size_t>(j)] = 1;
      max = std::max(max, s[static_cast<std::size_t>(j)]);
      if (std::isnan(s[static_cast<std::size_t>(j)])) max = s[static_cast<std::size_t>(j)];
    }
    finish({b, h, g, i}, row, s, seen, max, v);
  }

  /// A row of a query head, and its key head.
  struct At {
    std::int64_t b, h, g, i;
  };

  void finish(const At& at, std::size_t row, std::vector<Real>& s, const std::vector<char>& seen, Real max,
              const View<const Real>& v) {
    const bool any = std::find(seen.begin(), seen.end(), 1) != seen.end();
    Real* out = out_.data() + row * static_cast<std::size_t>(p_.value_dim);
    lse_[row] = fault_ == Fault::lse_plus_infinity ? std::numeric_limits<Real>::infinity()
                                                   : -std::numeric_limits<Real>::infinity();
    const bool fast_path = fault_ == Fault::fast_path_nan && p_.key_length > 256;
    if (!any && fault_ != Fault::nan_on_empty_row && !fast_path) return;
    if (fault_ == Fault::first_tile_minimum && static_cast<std::int64_t>(s.size()) > 2 * kTile) {
      const Real first = *std::max_element(s.begin(), s.begin() + 2 * kTile);
      if (std::isfinite(first) && first < std::numeric_limits<Real>::lowest() / 2) return;
    }
    const bool first_tile_hidden = s.size() > 32 && std::find(seen.begin(), seen.begin() + 32, 1) == seen.begin() + 32;
    if (fault_ == Fault::unshifted_softmax) max = 0;
    Real sum = 0;
    for (std::size_t j = 0; j < s.size(); ++j) {
      s[j] = seen[j] ? std::exp(s[j] - max) : Real{0};
      if (fault_ == Fault::weights_in_half) s[j] = static_cast<Real>(f16_to_float(to_f16(static_cast<double>(s[j]))));
      sum += s[j];
    }
    if (fault_ == Fault::tail_keys_counted) {
      sum += static_cast<Real>((32 - s.size() % 32) % 32) * std::exp(-max);
    }
    if (fault_ == Fault::band_start_nan && first_tile_hidden) sum = std::numeric_limits<Real>::quiet_NaN();
    for (std::size_t j = 0; j < s.size(); ++j) {
      if (!seen[j] && fault_ != Fault::hidden_nan_leaks) continue;
      if (s[j] == 0 && fault_ == Fault::zero_weights_skipped) continue;
      std::int64_t key = static_cast<std::int64_t>(j);
      if (fault_ == Fault::stride_zero_tail && v.strides[1] == 0 && s.size() % 32 == 1 && j + 1 == s.size()) key = 0;
      // A keep tensor may be given without a probability; drawn dropout is refused.
      if (inputs_.keep() && !inputs_.kept(at.b, at.h, at.i, static_cast<std::int64_t>(j))) continue;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] += s[j] * v(at.b, at.g, key, c);
    }
    for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] /= sum;
    if (any) lse_[row] = (max + std::log(sum)) * (fault_ == Fault::lse_in_base_2 ? Real(1.4426950408889634) : Real{1});
  }

  /// Every other call of the backend hands out what the call before computed.
  void keep_last() {
    const std::vector<double> fresh(out_.begin(), out_.end());
    const bool stale = last_.size() == fresh.size() && !last_.empty();
    if (stale) std::transform(last_.begin(), last_.end(), out_.begin(), [](double x) { return static_cast<Real>(x); });
    last_ = stale ? std::vector<double>{} : fresh;
  }

  const Call p_;
  Fault fault_;
  std::vector<double>& last_;
  bool shift_heads_ = false;
  Inputs inputs_{};
  std::vector<Real> out_, lse_;
};

class FaultyBackend : public Backend {
 public:
  FaultyBackend(Fault fault, const Context& /*context*/) : fault_(fault) {}
  Identity identity() const override {
    return {std::string(kDescriptions[static_cast<std::size_t>(fault_)].name), "deliberately wrong", "CPU"};
  }
  int contract() const override { return 3; }
  Arithmetic arithmetic(const Call& p) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = p.dtype;
    a.exp_ulps = a.log_ulps = 1;
    return a;
  }
  /// These loops know the textbook and softcap; tampered.cpp has the rest.
  std::optional<Refusal> refuse(const Call& p) const override {
    if (!p.has_scores() || size_of(p.dtype) == 2 || (p.mask && size_of(type_of(p, TensorId::mask)) == 2) ||
        p.prefix != 0 || p.lengths || p.segments || p.blocks || p.alibi || p.sinks || p.dropout != 0 || p.past != 0 ||
        p.page_size || p.wants_scores() || p.wants(Output::present)) {
      return Refusal{"beyond these loops"};
    }
    return std::nullopt;
  }
  std::unique_ptr<Plan> prepare(const Call& p) override {
    if (p.dtype == DType::f64) return std::make_unique<FaultyPlan<double>>(p, fault_, last_);
    return std::make_unique<FaultyPlan<float>>(p, fault_, last_);
  }

 private:
  Fault fault_;
  std::vector<double> last_;
};

}  // namespace

std::span<const BackendEntry> faulty_backends() {
  static const std::vector<BackendEntry> entries = [] {
    std::vector<BackendEntry> list = entries_of<FaultyBackend, Fault>(kDescriptions);
    list.insert(list.end(), tampered_backends().begin(), tampered_backends().end());
    list.insert(list.end(), linear_gradient_backends().begin(), linear_gradient_backends().end());
    list.insert(list.end(), linear_state_backends().begin(), linear_state_backends().end());
    list.insert(list.end(), launch_backends().begin(), launch_backends().end());
    list.insert(list.end(), stateful_backends().begin(), stateful_backends().end());
    return list;
  }();
  return entries;
}

std::string_view description(std::string_view name) {
  for (const Description& d : kDescriptions) {
    if (d.name == name) return d.text;
  }
  for (const auto described :
       {tampered_description, linear_gradient_description, linear_state_description, launch_description}) {
    if (const std::string_view text = described(name); !text.empty()) return text;
  }
  return stateful_description(name);
}

}  // namespace attest::faulty

#include "harness/cases/fill.h"

#include <algorithm>
#include <cmath>

#include "reference/call/tensor_place.h"
#include "reference/operators/operator.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Of any magnitude from 2^-10 up to 2^`exponent`, all equally often, and of either sign.
double wide_from(std::uint64_t bits, int exponent) {
  const std::uint64_t steps = static_cast<std::uint64_t>(exponent) + 10;
  const double size = std::ldexp(1 + hash_uniform(bits), static_cast<int>((bits >> 3 & 0xff) % steps) - 10);
  return (bits & 1) == 0 ? size : -size;
}

std::uint64_t linear(const Index4& shape, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<std::uint64_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d);
}

/// Keys count from 0 in each batch, wherever they are stored: a cache, pages and packed rows hold the same values, and
/// so do rows in two tensors.
Index4 logical_shape(const Call& p, TensorId id) {
  Index4 shape = place_of(p, id).shape;
  if (id == TensorId::k || id == TensorId::v) shape = {p.batch, seen_shape(p, id)[1], p.key_length, shape[3]};
  if (id == TensorId::q || id == TensorId::k) shape[3] = p.key_dim;
  return shape;
}

/// Subnormal, and as large as leaves room for a dozen standard deviations.
struct Extremes {
  double tiny, huge;
};
Extremes extremes_of(DType type) {
  switch (type) {
    case DType::f64: return {0x1p-1050, 0x1p500};
    case DType::f32: return {0x1p-140, 0x1p59};
    case DType::bf16: return {0x1p-130, 0x1p59};
    case DType::i8: return {1, 16};
    case DType::i4: return {1, 2};
    default: break;
  }
  // Squares of f16's largest numbers fit into an accumulator of f32; those of wider exponents must.
  const int top = largest_exponent(type), half = format_of(type).mantissa_bits / 2;
  return {std::ldexp(smallest_normal(type), -half), std::ldexp(1.0, std::min(top - 2, 59))};
}

/// Of keys or values: of the cached and of the new ones, which a fill doesn't tell apart.
DType narrowest_type(const Call& p, TensorId id) {
  DType narrowest = type_of(p, id);
  const auto include = [&](DType type) { narrowest = largest_of(type) < largest_of(narrowest) ? type : narrowest; };
  if (p.latent_apart && id == TensorId::q) include(type_of(p, TensorId::q_rope));
  if (p.latent_apart && id == TensorId::k) include(type_of(p, TensorId::k_rope));
  if (id != TensorId::k && id != TensorId::v) return narrowest;
  include(type_of(p, id == TensorId::k ? TensorId::past_k : TensorId::past_v));
  if (p.append) include(type_of(p, id == TensorId::k ? TensorId::new_k : TensorId::new_v));
  return narrowest;
}

/// The largest number of the type; of keys and values that are appended, the largest one that either type has: a new
/// one is rounded to its own type first, and then to the cache's.
double largest_in_cache(const Call& p, TensorId id, DType type) {
  double largest = largest_of(type);
  if (!p.append || (id != TensorId::k && id != TensorId::v)) return largest;
  for (const DType one : {type_of(p, id), type_of(p, id == TensorId::k ? TensorId::new_k : TensorId::new_v)}) {
    const double unit = std::ldexp(1.0, std::ilogb(largest) - format_of(one).mantissa_bits);
    if (is_floating(one)) largest = std::floor(largest / unit) * unit;
  }
  return largest;
}

constexpr int kLargestExponent = 10;  ///< of what is spread by magnitude
constexpr double kPadding = -10000;   ///< what models add where nothing is to be seen
constexpr std::uint64_t kMaskStream = 40, kSinkStream = 60, kPageStream = 6000;

}  // namespace

std::uint64_t hash_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return mix(mix(mix(seed) ^ stream) ^ index);
}

NormalDraws::NormalDraws(std::uint64_t seed, std::uint64_t stream) {
  for (std::uint64_t word = 0; word < words_.size(); ++word) words_[word] = mix(mix(seed) ^ (stream * 4 + word));
}

double NormalDraws::at(std::uint64_t index) const {
  std::int64_t sum = 0;
  for (const std::uint64_t word : words_) {
    const std::uint64_t bits = mix(word ^ index);  // hash_words(), whose first steps were done
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>((bits >> shift) & 0xffff);
  }
  return (static_cast<double>(sum) + 6.0 - 6.0 * 65536.0) / 65536.0;
}

double hash_uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

TensorFill::TensorFill(const Problem& problem, TensorId id)
    : id_(id),
      stream_(TestData::place_of_fill(id)),
      is_value_(id == TensorId::v || id == TensorId::dout || id == TensorId::part_o),
      shape_(logical_shape(problem, id)),
      batch_(problem.call.batch),
      seed_(problem.data.seed),
      normals_{NormalDraws(seed_, stream_ * 8), NormalDraws(seed_, stream_ * 8 + 1),
               NormalDraws(seed_, stream_ * 8 + 2), NormalDraws(seed_, stream_ * 8 + 3)} {
  const Fill& fill = problem.data.fill_of(id);
  const auto& known = tensor_fills();
  const auto found = std::find_if(known.begin(), known.end(), [&](const FillName& f) { return f.name == fill.name; });
  kind_ = static_cast<Kind>(found - known.begin());
  const DType type = narrowest_type(problem, id);
  const Extremes range = extremes_of(type);
  tiny_ = range.tiny;
  switch (kind_) {
    case Kind::spread: {
      // Scores get the standard deviation x/2: scale * sqrt(Dqk) * amplitude^2 = x/2.
      const double unit = std::fabs(problem.call.scale_value()) * std::sqrt(static_cast<double>(problem.call.key_dim));
      const double wanted = std::fabs(fill.args[0]) / 2;
      amplitude_ = is_value_ || unit == 0 ? 1 : std::sqrt(wanted / unit);
      break;
    }
    case Kind::infinite:
    case Kind::constant: amplitude_ = fill.args[0]; break;
    case Kind::denormal: amplitude_ = tiny_; break;
    case Kind::huge: amplitude_ = range.huge; break;
    case Kind::largest:
      // Accumulators have room for more in f16 alone; elsewhere sums over a million keys must stay finite, and products
      // do not.
      largest_ = largest_in_cache(problem.call, id, type) * (type == DType::f16 ? 1 : 0x1p-20);
      amplitude_ = is_value_ || type == DType::f16 ? fill.args[0] : 0;
      break;
    default: break;
  }
}

double TensorFill::normal(std::uint64_t index, std::uint64_t stream) const { return normals_[stream].at(index); }

double TensorFill::uniform(std::uint64_t index, std::uint64_t stream) const {
  return hash_uniform(hash_words(seed_, 1000 + stream_ * 8 + stream, index));
}

double TensorFill::integer(std::uint64_t index, std::int64_t largest) const {
  const auto span = static_cast<double>(2 * largest + 1);
  return std::floor(uniform(index, 1) * span) - static_cast<double>(largest);
}

double TensorFill::cancelling(std::uint64_t index, std::int64_t l, std::int64_t d) const {
  if (is_value_) return (l % 2 == 0 ? 1000.0 : -1000.0) + normal(index, 0);
  const bool second = d % 2 == 1;
  const double pair = normal(second ? index - 1 : index, 0) * 64;
  if (!second) return pair;
  // q repeats itself, k nearly negates itself: the pair's products all but cancel.
  return id_ == TensorId::q ? pair : -pair * (1 + normal(index, 1) * 0x1p-10);
}

double TensorFill::mixed(std::uint64_t index, std::uint64_t row) const {
  switch (hash_words(seed_, 2000 + stream_, row) % 6) {
    case 0: return normal(index, 0) * 16;
    case 1: return 0;
    case 2: return normal(index, 0) * tiny_;
    case 3: return integer(index, 4);
    case 4: return normal(index, 0) * 0x1p-20;
    default: return normal(index, 0);
  }
}

double TensorFill::activation(std::int64_t b, std::int64_t h, std::int64_t d, std::uint64_t index) const {
  // Student's t with three degrees of freedom has heavy tails; the rows of a head have half of their variance in
  // common.
  const double chi =
      normal(index, 1) * normal(index, 1) + normal(index, 2) * normal(index, 2) + normal(index, 3) * normal(index, 3);
  const double own = normal(index, 0) / std::sqrt(std::max(chi, 0x1p-4) / 3);
  const std::uint64_t of_column = linear({shape_[0], shape_[1], shape_[3], 1}, b, h, d, 0);
  const std::uint64_t bits = hash_words(seed_, 2500 + stream_, of_column);
  const double common = 4 * hash_uniform(bits) - 2, channel = bits % 16 == 0 ? 10 : 1;
  return channel * (own + common) / 2;
}

double TensorFill::at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
  const std::uint64_t index = linear(shape_, b, h, l, d);
  const std::uint64_t row = linear({shape_[0], shape_[1], shape_[2], 1}, b, h, l, 0);
  switch (kind_) {
    case Kind::normal: return normal(index, 0);
    case Kind::uniform: return 2 * uniform(index, 0) - 1;
    case Kind::spread:
    case Kind::denormal:
    case Kind::huge: return normal(index, 0) * amplitude_;
    case Kind::ties:
      // Keys come in three kinds, so that every maximum is shared by many.
      if (id_ == TensorId::k) return integer(linear(shape_, 0, 0, l % 3, d), 1);
      return integer(index, id_ == TensorId::q ? 1 : 8);
    case Kind::onehot: {
      if (is_value_) return integer(index, 8);
      const std::uint64_t hot = id_ == TensorId::k ? static_cast<std::uint64_t>(l) : hash_words(seed_, 3000, row);
      return static_cast<std::int64_t>(hot % static_cast<std::uint64_t>(shape_[3])) == d ? 128 : 0;
    }
    case Kind::constant: return amplitude_;
    case Kind::integer: return integer(index, 4);
    // Parts lie batch after batch: those of one row cancel.
    case Kind::cancel: return cancelling(index, id_ == TensorId::part_o ? b / batch_ : l, d);
    case Kind::mixed: return mixed(index, row);
    case Kind::activations: return activation(b, h, d, index);
    case Kind::infinite:
    case Kind::largest: {
      const double value = normal(index, 0);
      return uniform(index, 2) < amplitude_ ? std::copysign(largest_, value) : value;
    }
  }
  return 0;
}

MaskFill::MaskFill(const Problem& problem)
    : MaskFill(problem.data.mask_fill, problem.call.mask->additive, place_of(problem, TensorId::mask).shape, problem) {
  if (SequenceMask::has(fill_)) sequence_.emplace(problem);
}

MaskFill::MaskFill(const Fill& fill, bool additive, const Index4& shape, const Problem& problem)
    : fill_(fill),
      additive_(additive),
      shape_(shape),
      seed_(problem.data.seed),
      normals_(seed_, kMaskStream + 1),
      smallest_finite_(-largest_of(type_of(problem, TensorId::mask))),
      large_(type_of(problem, TensorId::mask) == DType::f16 ? -30000 : -1e9) {}

double MaskFill::uniform(std::uint64_t stream, std::uint64_t index) const {
  return hash_uniform(hash_words(seed_, kMaskStream + stream, index));
}

/// Of fills that are patterns of visibility in either kind of mask.
std::optional<bool> MaskFill::shows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  if (sequence_) return sequence_->shows(b, h, i, j);
  if (fill_.name == "band") return static_cast<double>(std::abs(i - j)) <= fill_.args[0];
  return std::nullopt;
}

double MaskFill::at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const std::uint64_t index = linear(shape_, b, h, i, j);
  const std::string& name = fill_.name;
  const double arg = fill_.args.empty() ? 0 : fill_.args[0];
  if (const std::optional<bool> shown = shows(b, h, i, j)) return additive_ ? (*shown ? 0 : -kInfinity) : *shown;
  if (additive_) return additive_at(arg, index);
  if (name == "all") return 1;
  if (name == "none") return 0;
  if (name == "rows") return uniform(1, linear({shape_[0], shape_[1], shape_[2], 1}, b, h, i, 0)) >= arg;
  if (name == "blocks") {
    const auto size = static_cast<std::int64_t>(arg);
    return uniform(2, linear(shape_, b, h, i / size, j / size)) < 0.5;
  }
  return uniform(0, index) < arg;  // random(p): visible with probability p
}

double MaskFill::additive_at(double probability, std::uint64_t index) const {
  const std::string& name = fill_.name;
  if (name == "normal") return normals_.at(index);
  if (name == "wide") return wide_from(hash_words(seed_, kMaskStream + 4, index), kLargestExponent);
  const double draw = uniform(3, index);
  if (name == "padding") return draw < probability ? kPadding : 0;
  if (name == "large") return draw < 0.5 ? large_ : normals_.at(index);
  if (!(draw < probability)) return normals_.at(index);
  if (name == "nan") return kNaN;
  if (name == "nonfinite") return draw < probability / 2 ? kNaN : -kInfinity;
  return name == "neginf" ? -kInfinity : smallest_finite_;
}

double input_value(const Problem& p, TensorId id, std::uint64_t stream, std::uint64_t index) {
  const std::uint64_t bits = hash_words(p.data.seed, stream, index);
  const std::optional<Fill>* own = id == TensorId::decay   ? &p.data.decay_fill
                                   : id == TensorId::beta  ? &p.data.beta_fill
                                   : id == TensorId::state ? &p.data.state_fill
                                                           : nullptr;
  const DrawnNumbers& spec = *row_of(id).drawn;
  if (is_scales(id)) {  // each second one is a power of two, by which products are exact
    const double low = std::log2(spec.low), exponent = low + (std::log2(spec.high) - low) * hash_uniform(bits);
    return std::exp2((bits & 1) != 0 ? std::round(exponent) : exponent);
  }
  if (!own || !*own) return spec.low + (spec.high - spec.low) * hash_uniform(bits);
  // A decay is no growth, and beyond 2 the delta rules diverge.
  const double value = wide_from(bits, id == TensorId::beta ? 1 : kLargestExponent);
  return spec.low >= 0 ? std::fabs(value) : spec.high <= 0 ? -std::fabs(value) : value;
}

double part_lse_value(const Problem& p, std::int64_t part, std::uint64_t row, std::uint64_t rows) {
  constexpr std::uint64_t kStream = 6100;
  const std::uint64_t index = static_cast<std::uint64_t>(part) * rows + row;
  if (hash_uniform(hash_words(p.data.seed, kStream + 1, index)) < p.data.empty_parts) return -kInfinity;
  const std::uint64_t bits = hash_words(p.data.seed, kStream, index);
  const Fill& fill = p.data.fill;
  if (fill.name == "spread") return NormalDraws(p.data.seed, kStream + 2).at(index) * std::fabs(fill.args[0]) / 2;
  if (fill.name == "ties") return static_cast<double>(bits % 3) - 1;
  if (fill.name == "cancel") return 0;
  if (fill.name == "onehot") {
    const std::uint64_t hot = hash_words(p.data.seed, kStream + 3, row) % static_cast<std::uint64_t>(p.call.parts);
    return static_cast<std::uint64_t>(part) == hot ? 128 : 0;
  }
  const DrawnNumbers& range = *row_of(TensorId::part_lse).drawn;
  return range.low + (range.high - range.low) * hash_uniform(bits);
}

std::vector<double> make_slopes(const Problem& problem) {
  const Call& p = problem.call;
  if (!p.alibi) return {};
  std::vector<double> slopes = p.alibi_slopes.empty() ? published_alibi_slopes(p.query_heads) : p.alibi_slopes;
  if (accumulator_of(p.dtype) == DType::f32) {
    for (double& slope : slopes) slope = static_cast<double>(static_cast<float>(slope));
  }
  return slopes;
}

std::vector<double> make_sinks(const Problem& p) {
  if (!p.call.sinks) return {};
  std::vector<double> sinks = p.call.sink_values;
  const NormalDraws normals(p.data.seed, kSinkStream);
  for (std::int64_t h = 0; sinks.size() < static_cast<std::size_t>(p.call.query_heads); ++h) {
    sinks.push_back(normals.at(static_cast<std::uint64_t>(h)) * 2);
  }
  if (accumulator_of(p.call.dtype) == DType::f32) {
    for (double& sink : sinks) sink = static_cast<double>(static_cast<float>(sink));
  }
  return sinks;
}

std::vector<std::int32_t> make_page_table(const Problem& p) {
  // A shuffle of all pages (Fisher and Yates), dealt out in order.
  std::vector<std::int32_t> pages(static_cast<std::size_t>(page_count(p)));
  for (std::size_t n = 0; n < pages.size(); ++n) pages[n] = static_cast<std::int32_t>(n);
  for (std::size_t n = pages.size(); n > 1; --n) {
    std::swap(pages[n - 1], pages[hash_words(p.data.seed, kPageStream, n) % n]);
  }
  const std::int64_t stride = extent_of(p, Axis::pages);
  std::vector<std::int32_t> table(static_cast<std::size_t>(p.call.batch * stride), -1);
  std::size_t next = 0;
  for (std::int64_t b = 0; b < p.call.batch; ++b) {
    for (std::int64_t n = 0; n < page_count(p, b); ++n) table[static_cast<std::size_t>(b * stride + n)] = pages[next++];
  }
  return table;
}

}  // namespace attest

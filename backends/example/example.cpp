// example: attention as plain loops. Copy this folder to start a backend; every step is the simplest that is right.
//
// Per query row: scores of the visible keys, their maximum, exp(score - maximum), the sum, and the weighted mean of
// the values. Keys that the row does not see are skipped, so that whatever they hold (NaN included) cannot leak.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backends/backend.h"
#include "backends/example/linear.h"
#include "backends/example/merge.h"
#include "backends/example/operands.h"
#include "backends/side_by_side.h"
#include "backends/support/host_results.h"
#include "backends/support/own_cache.h"
#include "reference/call/launch.h"

namespace attest {
namespace {

template <class Real>
constexpr Real kHidden = -std::numeric_limits<Real>::infinity();

/// Where key j of batch b is stored: a row of k and v, or of past_k and past_v.
struct Stored {
  bool past;
  std::int64_t batch, row;
};
inline Stored where_is(const Inputs& inputs, std::int64_t b, std::int64_t j) {
  if (inputs.page_table()) return {false, inputs.page(b, j / inputs.rows_of_page()), j % inputs.rows_of_page()};
  const std::int64_t past = inputs.past_length(b);
  if (j < past) return {true, b, j};
  return {false, b, j - past};
}

/// Where query i and key j stand to each other: within their segment, where there are any.
struct Standing {
  bool same_segment;
  std::int64_t diagonal, key;  ///< key == diagonal is on the diagonal
};
inline Standing stand(const Call& p, std::int64_t b, std::int64_t i, std::int64_t j) {
  if (!p.segments) return {true, i + p.diagonal_offset(b), j};
  const std::vector<std::int64_t>& keys = p.segments->key;
  const std::vector<std::int64_t>& queries = p.segments->query.empty() ? keys : p.segments->query;
  // Both count down from where their sequence begins: the segment that takes one of them below 0 holds it.
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const bool has_query = i < queries[n], has_key = j < keys[n];
    if (has_query && has_key) return {true, p.align == Align::bottom_right ? i + keys[n] - queries[n] : i, j};
    if (has_query || has_key) break;
    i -= queries[n];
    j -= keys[n];
  }
  return {false, 0, 0};
}

/// Dropout as drawn: the first word of Philox4x32-10 at counter (b, h, i, j), with the seed as key.
inline bool is_kept(std::uint64_t seed, double dropout, std::int64_t b, std::int64_t h, std::int64_t i,
                    std::int64_t j) {
  std::array<std::uint64_t, 4> x = {static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(h),
                                    static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)};
  constexpr std::uint64_t kWord = 0xFFFFFFFF;
  std::uint64_t low = seed & kWord, high = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53 * x[0], second = 0xCD9E8D57 * x[2];
    x = {(second >> 32) ^ x[1] ^ low, second & kWord, (first >> 32) ^ x[3] ^ high, first & kWord};
    low = (low + 0x9E3779B9) & kWord;
    high = (high + 0xBB67AE85) & kWord;
  }
  return static_cast<double>(x[0]) >= std::floor(dropout * 4294967296.0 + 0.5);
}

template <class Real>
class ExamplePlan : public Plan {
 public:
  explicit ExamplePlan(const Call& problem)
      : p_(problem),
        keys_(static_cast<std::size_t>(problem.key_length * problem.key_dim)),
        values_(static_cast<std::size_t>(problem.key_length * problem.value_dim)),
        query_(static_cast<std::size_t>(problem.key_dim)),
        scores_(static_cast<std::size_t>(problem.key_length)),
        dout_(static_cast<std::size_t>(problem.value_dim)),
        saved_(static_cast<std::size_t>(problem.value_dim)),
        results_(problem) {}

  void upload(const Inputs& inputs) override { inputs_ = cache_.upload(p_, inputs); }

  void run() override {
    take_lengths(p_, inputs_);
    results_.set_lengths(p_);
    cache_.append<Real>(p_, inputs_, [this](std::int64_t b, std::int64_t j, Real* key) {
      if (p_.rotated_cache) example::prepare(p_, inputs_, true, b, j, j, key);
    });
    results_.clear_gradients();
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const std::int64_t rows = p_.packed_sequences() ? p_.query_count(b) : p_.query_length;
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        read_keys(b, h / p_.heads_per_group());
        for (std::int64_t i = 0; i < rows; ++i) {
          if (p_.runs_forward()) attend(b, h, i);
          if (p_.wants_gradients()) differentiate(b, h, i);
        }
      }
    }
  }

  void download(const Outputs& outputs) override {
    results_.download(inputs_, outputs);
    cache_.download(outputs);
  }

  std::size_t workspace_bytes() const override {
    return (keys_.size() + values_.size() + query_.size() + scores_.size() + dout_.size() + saved_.size()) *
               sizeof(Real) +
           cache_.bytes();
  }

 private:
  /// A row's codes become numbers: each is multiplied by the scale of its share. `row` is that of the scales.
  static void dequantise(const ConstTensor* scales, const std::optional<ScaleSpec>& spec, std::int64_t batch,
                         std::int64_t head, std::int64_t row, std::int64_t count, Real* codes) {
    if (!scales) return;
    for (std::int64_t d = 0; d < count; ++d) {
      const std::int64_t block = spec->block > 0 ? d / spec->block : 0;
      codes[d] *= static_cast<Real>(load(scales->data, scales->dtype, scales->offset(batch, head, row, block)));
    }
  }

  /// Keys and values of one head as dense rows, from wherever they are stored: strided, cached, paged or packed.
  void read_keys(std::int64_t b, std::int64_t group) {
    const std::int64_t stored = p_.stored_keys(b);
    for (std::int64_t j = 0; j < stored; ++j) {
      const Stored at = where_is(inputs_, b, j);
      support::read_row(at.past ? inputs_.past_k() : inputs_.k(), at.batch, group, at.row,
                        keys_.data() + j * p_.key_dim);
      support::read_row(at.past ? inputs_.past_v() : inputs_.v(), at.batch, group, at.row,
                        values_.data() + j * p_.value_dim);
      if (p_.latent_apart) {
        support::read_row(inputs_.at(TensorId::k_rope), at.batch, group, at.row,
                          keys_.data() + j * p_.key_dim + p_.value_dim);
      }
      // Scales lie beside the rows of pages, and are numbered as all keys are where there are none.
      const std::int64_t batch = p_.page_size ? at.batch : b, row = p_.page_size ? at.row : j;
      const std::int64_t columns = p_.latent_apart ? p_.value_dim : p_.key_dim;
      dequantise(inputs_.k_scales(), p_.k_scale, batch, group, row, columns, keys_.data() + j * p_.key_dim);
      const ConstTensor* of_values = p_.latent ? inputs_.k_scales() : inputs_.v_scales();
      dequantise(of_values, p_.latent ? p_.k_scale : p_.v_scale, batch, group, row, p_.value_dim,
                 values_.data() + j * p_.value_dim);
      const bool was_prepared = p_.rotated_cache && (at.past || p_.append);
      if (!was_prepared) example::prepare(p_, inputs_, true, b, j, j, keys_.data() + j * p_.key_dim);
    }
  }

  void read_query(std::int64_t b, std::int64_t h, std::int64_t i) {
    support::read_row(inputs_.q(), b, h, i, query_.data());
    if (p_.latent_apart) support::read_row(inputs_.at(TensorId::q_rope), b, h, i, query_.data() + p_.value_dim);
    dequantise(inputs_.q_scales(), p_.q_scale, b, h, i, p_.latent_apart ? p_.value_dim : p_.key_dim, query_.data());
    example::prepare(p_, inputs_, false, b, i, i + p_.diagonal_offset(b), query_.data());
    scale_ = example::scale_of<Real>(p_, inputs_, b, h, i);
  }

  /// Whether the query's list of keys, or of blocks of them, has the key.
  bool is_listed(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const auto lists = inputs_.indices()->as<const std::int32_t>();
    const std::int64_t group = h / (p_.query_heads / p_.key_heads);
    for (std::int64_t n = 0; n < p_.select->count; ++n) {
      const std::int64_t first = lists(b, group, i, n) * p_.select->block;
      if (first >= 0 && j >= first && j < first + p_.select->block) return true;
    }
    return false;
  }

  /// Written from the definition, independently of reference/.
  bool sees(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, const Standing& at) const {
    if (i >= p_.query_count(b) || j >= p_.key_count(b) || !at.same_segment) return false;
    if (p_.prefix_causal && at.key > at.diagonal) return false;
    if (at.key >= p_.prefix) {  // a prefix is seen by everyone in its segment
      if (p_.causal && at.key > at.diagonal) return false;
      if (p_.window_left != Call::kUnbounded && at.key < at.diagonal - p_.window_left) return false;
      // Compared before adding: the diagonal may lie left of the first key, and the side may be unbounded.
      if (p_.window_right < p_.key_length - at.diagonal && at.key > at.diagonal + p_.window_right) return false;
    }
    if (inputs_.blocks() && !inputs_.block(b, h, i / p_.blocks->rows, j / p_.blocks->columns)) return false;
    if (p_.select && !is_listed(b, h, i, j)) return false;
    const ConstTensor* mask = inputs_.mask();
    if (!mask) return true;
    const double element = load(mask->data, mask->dtype, mask->offset(b, h, i, j));
    return is_additive(*mask) ? element != -kInfinity : element != 0;
  }

  /// scale * <q, k>, the cap, then the biases. Of the query that was read last.
  struct Score {
    Real raw, capped, biased;
  };
  Score score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, const Standing& at) const {
    Score s{};
    const Real* key = keys_.data() + j * p_.key_dim;
    for (std::int64_t t = 0; t < p_.key_dim; ++t) s.raw += query_[static_cast<std::size_t>(t)] * key[t];
    const Real product = s.raw;
    s.capped = s.raw = product * scale_;
    if (p_.softcap) {
      const auto cap = static_cast<Real>(*p_.softcap);
      s.capped = p_.unscaled_cap ? cap * std::tanh(product / cap) * scale_ : cap * std::tanh(s.raw / cap);
    }
    s.biased = s.capped;
    if (inputs_.mask() && is_additive(*inputs_.mask())) {
      s.biased +=
          static_cast<Real>(load(inputs_.mask()->data, inputs_.mask()->dtype, inputs_.mask()->offset(b, h, i, j)));
    }
    if (inputs_.slopes()) {
      const auto slope = static_cast<Real>(inputs_.slope(b, h));
      s.biased -= slope * static_cast<Real>(std::abs(at.diagonal - at.key));
    }
    return s;
  }

  void attend(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::size_t row = results_.row(b, h, i);
    Real* raw = results_.stage_row(results_.raw, row);
    Real* capped = results_.stage_row(results_.capped, row);
    Real* biased = results_.stage_row(results_.biased, row);
    read_query(b, h, i);

    // A separate flag, not the score's value, says whether a key is hidden: a visible score may overflow to -inf.
    const Real sink = inputs_.sinks() ? static_cast<Real>(inputs_.sink(h)) : kHidden<Real>;
    const bool has_sink = sink != kHidden<Real>;
    bool any = has_sink;
    Real max = sink;
    seen_.assign(scores_.size(), 0);
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      const Standing at = stand(p_, b, i, j);
      const bool seen = sees(b, h, i, j, at);
      if (!seen && !raw && !capped && !biased) continue;
      const Score s = score(b, h, i, j, at);
      if (raw) raw[j] = s.raw;
      if (capped) capped[j] = s.capped;
      if (biased) biased[j] = seen ? s.biased : kHidden<Real>;
      if (!seen) continue;
      seen_[static_cast<std::size_t>(j)] = 1;
      scores_[static_cast<std::size_t>(j)] = s.biased;
      max = any ? std::max(max, s.biased) : s.biased;
      any = true;
    }

    Real* out = results_.out_row(row);
    Real* weights = results_.stage_row(results_.weights, row);
    std::fill_n(out, p_.value_dim, Real{0});
    if (weights) std::fill_n(weights, p_.key_length, Real{0});
    if (!any) {  // an empty row: output 0, lse -inf
      results_.lse[row] = kHidden<Real>;
      results_.keep_maximum(row, kHidden<Real>, Real{0});
      return;
    }

    Real sum = has_sink ? std::exp(sink - max) : Real{0};
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!seen_[at]) continue;
      const Real weight = std::exp(scores_[at] - max);
      sum += weight;
      if (weights) weights[j] = weight;
      const Real kept = weight * keep_factor(b, h, i, j);
      for (std::int64_t c = 0; c < p_.value_dim; ++c)
        out[c] += kept * values_[static_cast<std::size_t>(j * p_.value_dim + c)];
    }
    for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] /= sum;
    for (std::int64_t j = 0; weights && j < p_.key_length; ++j) {
      if (seen_[static_cast<std::size_t>(j)]) weights[j] /= sum;
    }
    results_.lse[row] = max + std::log(sum);
    results_.keep_maximum(row, max, sum);
  }

  /// What query i gives to the gradients: weights are exp(s - lse), once more, and D is the sum of do * o.
  void differentiate(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::size_t row = results_.row(b, h, i);
    const std::int64_t key_head = b * p_.key_heads + h / p_.heads_per_group();
    read_query(b, h, i);
    support::read_row(inputs_.dout(), b, h, i, dout_.data());
    Real lse = results_.lse[row], dlse = 0;
    const Real* out = results_.out_row(row);
    if (!p_.runs_forward()) {
      support::read_row(inputs_.saved_lse(), b, h, i, &lse);
      support::read_row(inputs_.saved_o(), b, h, i, saved_.data());
      out = saved_.data();
    }
    if (inputs_.dlse()) support::read_row(*inputs_.dlse(), b, h, i, &dlse);
    bool any = false;
    Real delta = 0;  // of a row that sees nothing, whatever its do holds
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      const Standing at = stand(p_, b, i, j);
      if (!sees(b, h, i, j, at)) continue;
      for (std::int64_t c = 0; !any && c < p_.value_dim; ++c) delta += dout_[static_cast<std::size_t>(c)] * out[c];
      any = true;
      const Real *key = keys_.data() + j * p_.key_dim, *value = values_.data() + j * p_.value_dim;
      const Score s = score(b, h, i, j, at);
      const Real weight = std::exp(s.biased - lse), factor = keep_factor(b, h, i, j);
      Real product = 0;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) product += dout_[static_cast<std::size_t>(c)] * value[c];
      const Real of_score = weight * (factor * product - delta + dlse);
      const Real tanh = p_.softcap ? s.capped / static_cast<Real>(*p_.softcap) : 0;
      const Real of_raw = of_score * (1 - tanh * tanh) * static_cast<Real>(p_.scale_value());
      Real* dq = results_.dq.data() + row * static_cast<std::size_t>(p_.key_dim);
      Real* dk = results_.dk.data() + (key_head * p_.key_length + j) * p_.key_dim;
      Real* dv = results_.dv.data() + (key_head * p_.key_length + j) * p_.value_dim;
      for (std::int64_t t = 0; t < p_.key_dim; ++t) {
        dq[t] += of_raw * key[t];
        dk[t] += of_raw * query_[static_cast<std::size_t>(t)];
      }
      for (std::int64_t c = 0; c < p_.value_dim; ++c) dv[c] += weight * factor * dout_[static_cast<std::size_t>(c)];
      if (!results_.dmask.empty()) results_.dmask[mask_element(b, h, i, j)] += of_score;
    }
    if (!inputs_.sinks() || results_.dsinks.empty()) return;
    const auto sink = static_cast<Real>(inputs_.sink(h));
    if (sink != kHidden<Real>) results_.dsinks[static_cast<std::size_t>(h)] += std::exp(sink - lse) * (dlse - delta);
  }

  /// The element of the mask as it is stored, one for all indices of a broadcast axis.
  std::size_t mask_element(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const auto& kept = p_.mask->kept;
    const Index4 n = stored_shape(p_, TensorId::mask);
    return static_cast<std::size_t>((((kept[0] ? b : 0) * n[1] + (kept[1] ? h : 0)) * n[2] + (kept[2] ? i : 0)) * n[3] +
                                    (kept[3] ? j : 0));
  }

  /// Dropout: keep / (1 - p), drawn by the seed or given.
  Real keep_factor(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (p_.dropout == 0 && !inputs_.keep()) return Real{1};
    const bool keep = inputs_.keep() ? inputs_.kept(b, h, i, j) : is_kept(p_.dropout_seed, p_.dropout, b, h, i, j);
    return keep ? static_cast<Real>(1 / (1 - p_.dropout)) : Real{0};
  }

  Call p_;  ///< with the lengths of the last run
  Inputs inputs_{};
  support::OwnCache cache_;
  std::vector<Real> keys_, values_, query_, scores_, dout_, saved_;
  Real scale_ = 1;  ///< of the query that was read last
  std::vector<char> seen_;
  support::HostResults<Real> results_;
};

class ExampleBackend : public Backend, public SideBySide {
 public:
  explicit ExampleBackend(const Context&) {}  // one thread, whatever was asked for

  Identity identity() const override { return {"example", "plain C++ loops", "CPU, 1 thread"}; }
  int contract() const override { return 9; }

  Conventions conventions() const override {
    Conventions stated;
    // Each row by itself, one key after the other.
    stated.same_bits = "repeat, threads, batch, head, decode, chunks, packing, pages, paging";
    return stated;
  }
  Arithmetic arithmetic(const Call& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
    a.exp_ulps = a.log_ulps = 1;  // glibc's expf, exp, logf and log are below 1 ulp
    a.tanh_ulps = 2;              // and its tanh below 2
    a.base2 = problem.base2;      // merges by exp2 and log2, which are below 1 as well
    return a;
  }

  std::unique_ptr<Plan> prepare(const Call& problem) override {
    if (problem.has_parts()) {
      if (problem.dtype == DType::f64) return std::make_unique<example::MergePlan<double>>(problem);
      return std::make_unique<example::MergePlan<float>>(problem);
    }
    if (problem.has_state()) {
      if (problem.dtype == DType::f64) return std::make_unique<example::LinearPlan<double>>(problem);
      return std::make_unique<example::LinearPlan<float>>(problem);
    }
    if (problem.dtype == DType::f64) return std::make_unique<ExamplePlan<double>>(problem);
    return std::make_unique<ExamplePlan<float>>(problem);
  }
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(example, ExampleBackend)

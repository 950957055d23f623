// example: attention as plain loops. Copy this folder to start a backend; every step is the simplest that is right.
//
// Per query row: scores of the visible keys, their maximum, exp(score - maximum), the sum, and the weighted mean of
// the values. Keys that the row does not see are skipped, so that whatever they hold (NaN included) cannot leak.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/backend.h"

namespace attest {
namespace {

/// Which keys a query row may see. Written from the definition, independently of reference/.
class Visibility {
 public:
  Visibility(const Problem& problem, const std::optional<MaskTensor>& mask) : problem_(problem), mask_(mask) {}

  /// Keys outside [first, last) are hidden by causal or window, whatever the mask says.
  std::pair<std::int64_t, std::int64_t> range(std::int64_t i) const {
    const std::int64_t diagonal = i + problem_.diagonal_offset();
    std::int64_t first = 0, last = problem_.key_length;
    if (problem_.causal) last = std::min(last, diagonal + 1);
    if (problem_.window_left != Problem::kUnbounded) first = std::max(first, diagonal - problem_.window_left);
    // Compared before adding: the diagonal may lie left of the first key, and the side may be unbounded.
    if (problem_.window_right < problem_.key_length - diagonal) last = std::min(last, diagonal + problem_.window_right + 1);
    return {std::max<std::int64_t>(first, 0), last};
  }

  bool hidden_by_mask(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return mask_ && !mask_->additive && static_cast<const std::uint8_t*>(mask_->data)[mask_->at(b, h, i, j)] == 0;
  }

  /// What is added to the score; -inf hides the key.
  double bias(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return mask_ && mask_->additive ? load(mask_->data, mask_->dtype, mask_->at(b, h, i, j)) : 0;
  }

 private:
  const Problem& problem_;
  const std::optional<MaskTensor>& mask_;
};

template <class Real>
class ExamplePlan : public Plan {
 public:
  explicit ExamplePlan(const Problem& problem)
      : problem_(problem),
        weights_(static_cast<std::size_t>(problem.key_length)),
        out_(static_cast<std::size_t>(problem.batch * problem.query_heads * problem.query_length * problem.value_dim)),
        lse_(static_cast<std::size_t>(problem.batch * problem.query_heads * problem.query_length)) {}

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    std::size_t row = 0;
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      for (std::int64_t h = 0; h < problem_.query_heads; ++h) {
        for (std::int64_t i = 0; i < problem_.query_length; ++i, ++row) attend(b, h, i, row);
      }
    }
  }

  void download(const Outputs& outputs) override {
    const View<Real> out = outputs.out.as<Real>();
    std::size_t row = 0;
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      for (std::int64_t h = 0; h < problem_.query_heads; ++h) {
        for (std::int64_t i = 0; i < problem_.query_length; ++i, ++row) {
          const Real* from = out_.data() + row * static_cast<std::size_t>(problem_.value_dim);
          for (std::int64_t c = 0; c < problem_.value_dim; ++c) out(b, h, i, c) = from[c];
          if (outputs.lse) outputs.lse->as<Real>()(b, h, i, 0) = lse_[row];
        }
      }
    }
  }

  std::size_t workspace_bytes() const override { return weights_.size() * sizeof(Real); }

 private:
  void attend(std::int64_t b, std::int64_t h, std::int64_t i, std::size_t row) {
    const auto q = inputs_.q.as<const Real>();
    const auto k = inputs_.k.as<const Real>();
    const auto v = inputs_.v.as<const Real>();
    const Visibility visibility(problem_, inputs_.mask);
    const std::int64_t group = h / problem_.heads_per_group();
    const auto scale = static_cast<Real>(problem_.scale_value());
    const auto [first, last] = visibility.range(i);
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();

    // A separate flag, not the score's value, says whether a key is hidden: a visible score may overflow to -inf.
    bool any = false;
    Real max = kHidden;
    seen_.assign(weights_.size(), 0);
    for (std::int64_t j = first; j < last; ++j) {
      const auto bias = static_cast<Real>(visibility.bias(b, h, i, j));
      if (bias == kHidden || visibility.hidden_by_mask(b, h, i, j)) continue;
      Real score = 0;
      for (std::int64_t t = 0; t < problem_.key_dim; ++t) score += q(b, h, i, t) * k(b, group, j, t);
      score = score * scale + bias;
      seen_[static_cast<std::size_t>(j)] = 1;
      weights_[static_cast<std::size_t>(j)] = score;
      max = any ? std::max(max, score) : score;
      any = true;
    }

    Real* out = out_.data() + row * static_cast<std::size_t>(problem_.value_dim);
    std::fill_n(out, problem_.value_dim, Real{0});
    lse_[row] = kHidden;
    if (!any) return;  // an empty row: output 0, lse -inf

    Real sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!seen_[at]) continue;
      const Real weight = std::exp(weights_[at] - max);
      sum += weight;
      for (std::int64_t c = 0; c < problem_.value_dim; ++c) out[c] += weight * v(b, group, j, c);
    }
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) out[c] /= sum;
    lse_[row] = max + std::log(sum);
  }

  const Problem problem_;
  Inputs inputs_{};
  std::vector<Real> weights_;
  std::vector<char> seen_;
  std::vector<Real> out_, lse_;
};

class ExampleBackend : public Backend {
 public:
  explicit ExampleBackend(const Context&) {}  // one thread, whatever was asked for

  Identity identity() const override { return {"example", "plain C++ loops", "CPU, 1 thread"}; }

  std::optional<Refusal> refuse(const Problem& problem) const override {
    if (auto beyond = beyond_this_version(problem)) return Refusal{*beyond};
    return std::nullopt;
  }

  Arithmetic arithmetic(const Problem& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = problem.dtype;
    a.exp_ulps = a.log_ulps = 1;  // glibc's expf, exp, logf and log are below 1 ulp
    return a;
  }

  std::unique_ptr<Plan> prepare(const Problem& problem) override {
    if (problem.dtype == DType::f64) return std::make_unique<ExamplePlan<double>>(problem);
    return std::make_unique<ExamplePlan<float>>(problem);
  }
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(example, ExampleBackend)

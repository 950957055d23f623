// example_cpp: the class that backends/README.md builds, as a plug-in. Heads in groups in float32, with
// scale and causal; what else a call may ask for it refuses.
#include <algorithm>
#include <attest/attest_plugin.hpp>
#include <cmath>
#include <vector>

namespace {

using namespace attest;

class MyPlan : public Plan {
 public:
  explicit MyPlan(const Call& call)
      : p_(call),
        weights_(static_cast<std::size_t>(call.key_length)),
        out_(static_cast<std::size_t>(call.batch * call.query_heads * call.query_length * call.value_dim)) {}

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    const auto q = inputs_.q().as<const float>(), k = inputs_.k().as<const float>(), v = inputs_.v().as<const float>();
    const auto scale = static_cast<float>(p_.scale_value());
    float* out = out_.data();
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.query_length; ++i, out += p_.value_dim) attend(q, k, v, scale, b, h, i, out);
      }
    }
  }

  void download(const Outputs& outputs) override {
    const auto out = outputs.out().as<float>();
    const float* from = out_.data();
    each_index(out.shape, [&](auto b, auto h, auto i, auto d) { out(b, h, i, d) = *from++; });
  }

  std::size_t workspace_bytes() const override { return (weights_.size() + out_.size()) * sizeof(float); }

 private:
  using Tensor = View<const float>;

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, float scale, std::int64_t b, std::int64_t h,
              std::int64_t i, float* out) {
    const std::int64_t group = h / p_.heads_per_group();
    const std::int64_t seen = p_.causal ? std::min(p_.key_length, i + p_.diagonal_offset(b) + 1) : p_.key_length;
    std::fill_n(out, p_.value_dim, 0.0f);
    if (seen <= 0) return;
    for (std::int64_t j = 0; j < seen; ++j) {
      float& weight = weights_[static_cast<std::size_t>(j)];
      weight = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d) weight += q(b, h, i, d) * k(b, group, j, d);
      weight *= scale;
    }
    const float max = *std::max_element(weights_.begin(), weights_.begin() + seen);
    float sum = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      const float weight = std::exp(weights_[static_cast<std::size_t>(j)] - max);
      sum += weight;
      for (std::int64_t d = 0; d < p_.value_dim; ++d) out[d] += weight * v(b, group, j, d);
    }
    for (std::int64_t d = 0; d < p_.value_dim; ++d) out[d] /= sum;
  }

  Call p_;
  Inputs inputs_{};
  std::vector<float> weights_, out_;
};

class MyBackend : public Backend {
 public:
  explicit MyBackend(const Context&) {}

  Identity identity() const override { return {"example_cpp", "plain C++ loops", "CPU, 1 thread"}; }
  int contract() const override { return 4; }

  std::optional<Refusal> refuse(const Call& call) const override {
    Call plain;  // sizes, types of storage and layouts as they come; of the options scale and causal
    plain.batch = call.batch;
    plain.query_heads = call.query_heads;
    plain.key_heads = call.key_heads;
    plain.query_length = call.query_length;
    plain.key_length = call.key_length;
    plain.key_dim = call.key_dim;
    plain.value_dim = call.value_dim;
    plain.scale = call.scale;
    plain.causal = call.causal;
    plain.align = call.align;
    if (!call.packed_sequences()) plain.layout = call.layout;
    plain.tensors = call.tensors;
    if (call == plain) return std::nullopt;
    return Refusal{"float32 with scale and causal is all there is so far"};
  }

  Arithmetic arithmetic(const Call&) const override {
    Arithmetic rounding;  // sums in float32, IEEE division, and so on: see reference/arithmetic/arithmetic.h
    rounding.exp_ulps = 1;
    return rounding;
  }

  std::unique_ptr<Plan> prepare(const Call& call) override { return std::make_unique<MyPlan>(call); }
};

}  // namespace

ATTEST_PLUGIN_BACKEND(example_cpp, MyBackend)

#include "tests/faulty/cheats/gradient_cheats.h"

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "reference/options/case_line.h"
#include "tests/faulty/around.h"

namespace attest::faulty {
namespace {

enum class Kept { nothing, results, q, k, v, dout, saved_o, saved_lse, weights, score_gradients, upload, count };

struct Description {
  std::string_view name;
  NoSpeed reason;
};

constexpr std::array<Description, static_cast<std::size_t>(Kept::count)> kDescriptions = {{
    {"plain_gradients", NoSpeed::none},
    {"keeps_gradients", NoSpeed::earlier_result},
    {"keeps_q", NoSpeed::wrong_while_timed},
    {"keeps_k", NoSpeed::wrong_while_timed},
    {"keeps_v", NoSpeed::wrong_while_timed},
    {"keeps_do", NoSpeed::wrong_while_timed},
    {"keeps_saved_o", NoSpeed::wrong_while_timed},
    {"keeps_saved_lse", NoSpeed::wrong_while_timed},
    {"keeps_weights", NoSpeed::wrong_while_timed},
    {"keeps_score_gradients", NoSpeed::wrong_while_timed},
    {"differentiates_in_upload", NoSpeed::result_before_run},
}};

/// All elements of a dense tensor.
std::vector<float> elements_of(const ConstTensor& t) {
  const auto* first = static_cast<const float*>(t.data);
  return {first, first + span_bytes(t) / sizeof(float)};
}

class GradientPlan : public Plan {
 public:
  GradientPlan(const Call& call, Kept kept) : p_(call), kept_(kept) {}

  void upload(const Inputs& inputs) override {
    const bool first = uploads_++ == 0;
    const auto take = [&](TensorId id, Kept as, std::vector<float>& to) {
      if (first || kept_ != as) to = elements_of(inputs.at(id));
    };
    take(TensorId::q, Kept::q, q_);
    take(TensorId::k, Kept::k, k_);
    take(TensorId::v, Kept::v, v_);
    take(TensorId::dout, Kept::dout, do_);
    take(TensorId::saved_o, Kept::saved_o, o_);
    take(TensorId::saved_lse, Kept::saved_lse, lse_);
    if (kept_ == Kept::upload) differentiate();
  }
  void run() override {
    const bool first = runs_++ == 0;
    if (kept_ == Kept::upload || (kept_ == Kept::results && !first)) return;
    differentiate();
  }
  void download(const Outputs& outputs) override {
    write(*outputs.dq(), dq_);
    write(*outputs.dk(), dk_);
    write(*outputs.dv(), dv_);
  }

 private:
  static void write(const MutableTensor& to, const std::vector<float>& from) {
    std::size_t n = 0;
    each_index(to.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      static_cast<float*>(to.data)[to.offset(b, h, l, d)] = from[n++];
    });
  }
  static float dot(const float* a, const float* b, std::size_t n) {
    float sum = 0;
    for (std::size_t d = 0; d < n; ++d) sum += a[d] * b[d];
    return sum;
  }

  void differentiate() {
    const auto heads = static_cast<std::size_t>(p_.batch * p_.query_heads);
    const auto rows = static_cast<std::size_t>(p_.query_length), keys = static_cast<std::size_t>(p_.key_length);
    const auto dim = static_cast<std::size_t>(p_.key_dim);
    const auto scale = static_cast<float>(p_.scale_value());
    dq_.assign(q_.size(), 0);
    dk_.assign(k_.size(), 0);
    dv_.assign(v_.size(), 0);
    const bool first = weights_.empty();
    weights_.resize(heads * rows * keys);
    of_scores_.resize(weights_.size());
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = h * rows + i;
        const float delta = dot(&do_[row * dim], &o_[row * dim], dim);
        for (std::size_t j = 0; j < keys; ++j) {
          const std::size_t key = h * keys + j;
          float& weight = weights_[row * keys + j];
          float& of_score = of_scores_[row * keys + j];
          const bool keeps_both = kept_ == Kept::score_gradients;
          if (first || (kept_ != Kept::weights && !keeps_both))
            weight = std::exp(scale * dot(&q_[row * dim], &k_[key * dim], dim) - lse_[row]);
          if (first || !keeps_both) of_score = weight * (dot(&do_[row * dim], &v_[key * dim], dim) - delta) * scale;
          for (std::size_t d = 0; d < dim; ++d) {
            dq_[row * dim + d] += of_score * k_[key * dim + d];
            dk_[key * dim + d] += of_score * q_[row * dim + d];
            dv_[key * dim + d] += weight * do_[row * dim + d];
          }
        }
      }
    }
  }

  const Call p_;
  Kept kept_;
  int uploads_ = 0, runs_ = 0;
  std::vector<float> q_, k_, v_, do_, o_, lse_, dq_, dk_, dv_, weights_, of_scores_;
};

class GradientBackend : public BackendAround {
 public:
  GradientBackend(Kept kept, const Context&)
      : BackendAround({std::string(kDescriptions[static_cast<std::size_t>(kept)].name), "a cheat", "CPU"},
                      make_example()),
        kept_(kept) {}
  std::optional<Refusal> refuse(const Call& p) const override {
    Call plain;
    plain.set_pass(Pass::backward);
    plain.batch = p.batch;
    plain.query_heads = plain.key_heads = p.query_heads;
    plain.query_length = plain.key_length = p.query_length;
    plain.key_dim = plain.value_dim = p.key_dim;
    if (!(p == plain)) return Refusal{"beyond this cheat"};
    return std::nullopt;
  }
  std::unique_ptr<Plan> prepare(const Call& p) override { return std::make_unique<GradientPlan>(p, kept_); }

 private:
  Kept kept_;
};

}  // namespace

std::span<const BackendEntry> gradient_cheats() {
  static const auto entries = entries_of<GradientBackend, Kept>(kDescriptions);
  return entries;
}

NoSpeed reason_for_gradient_cheat(std::string_view name) {
  for (const Description& d : kDescriptions) {
    if (d.name == name) return d.reason;
  }
  return NoSpeed::none;
}

}  // namespace attest::faulty

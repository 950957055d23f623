// A kernel that lives outside attest, behind attest's contract, with attest's whole command line around it.
#include <attest/harness/cli/cli.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace attest;

/// Plain float attention without options: what a kernel may look like on its first day.
class MyPlan : public Plan {
 public:
  explicit MyPlan(const Call& call) : p_(call) {}
  void upload(const Inputs& inputs) override { inputs_ = inputs; }
  void run() override {
    out_.assign(static_cast<std::size_t>(p_.query_length * p_.value_dim), 0.0f);
    const auto q = inputs_.q().as<const float>(), k = inputs_.k().as<const float>(), v = inputs_.v().as<const float>();
    std::vector<float> s(static_cast<std::size_t>(p_.key_length));
    for (std::int64_t i = 0; i < p_.query_length; ++i) {
      float max = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::int64_t j = 0; j < p_.key_length; ++j) {
        float& score = s[static_cast<std::size_t>(j)] = 0;
        for (std::int64_t d = 0; d < p_.key_dim; ++d) score += q(0, 0, i, d) * k(0, 0, j, d);
        score *= static_cast<float>(p_.scale_value());
        max = std::max(max, score);
      }
      float* out = out_.data() + i * p_.value_dim;
      for (std::int64_t j = 0; j < p_.key_length; ++j) {
        const float weight = std::exp(s[static_cast<std::size_t>(j)] - max);
        sum += weight;
        for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] += weight * v(0, 0, j, c);
      }
      for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] /= sum;
    }
  }
  void download(const Outputs& outputs) override {
    const auto out = outputs.out().as<float>();
    for (std::int64_t i = 0; i < p_.query_length; ++i) {
      for (std::int64_t c = 0; c < p_.value_dim; ++c)
        out(0, 0, i, c) = out_[static_cast<std::size_t>(i * p_.value_dim + c)];
    }
  }

 private:
  Call p_;
  Inputs inputs_;
  std::vector<float> out_;
};

class MyBackend : public Backend {
 public:
  Identity identity() const override { return {"mine", "my kernels 0.1", "CPU"}; }
  int contract() const override { return 3; }
  std::optional<Refusal> refuse(const Call& p) const override {
    Call plain;
    plain.query_length = p.query_length;
    plain.key_length = p.key_length;
    plain.key_dim = p.key_dim;
    plain.value_dim = p.value_dim;
    if (p.key_length > 0 && p == plain) return std::nullopt;
    return Refusal{"one head without options is all there is so far"};
  }
  Arithmetic arithmetic(const Call&) const override {
    Arithmetic a;
    a.exp_ulps = 1;
    return a;
  }
  std::unique_ptr<Plan> prepare(const Call& p) override { return std::make_unique<MyPlan>(p); }
};

}  // namespace

int main(int argc, char** argv) {
  const BackendEntry mine[] = {
      {"mine", [](const Context&) -> std::unique_ptr<Backend> { return std::make_unique<MyBackend>(); }, ""}};
  return run_command_line(argc, argv, mine);
}

// Statements are probed: a backend that says more of its arithmetic than it does, or other conventions, is found out.
#include "harness/probe/probe.h"

#include <functional>

#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// A backend of the registry that says something else of itself.
class Liar : public Backend {
 public:
  Liar(const char* name, std::function<void(Arithmetic&)> lie)
      : set_(registered_backends(), {name}, {1, ""}), lie_(std::move(lie)) {}
  Identity identity() const override { return honest().identity(); }
  int contract() const override { return honest().contract(); }
  std::optional<Refusal> refuse(const Call& p) const override { return honest().refuse(p); }
  Arithmetic arithmetic(const Call& p) const override {
    Arithmetic a = honest().arithmetic(p);
    lie_(a);
    return a;
  }
  Conventions conventions() const override { return honest().conventions(); }
  std::unique_ptr<Plan> prepare(const Call& p) override { return honest().prepare(p); }

 private:
  Backend& honest() const { return *set_.all().front(); }
  BackendSet set_;
  std::function<void(Arithmetic&)> lie_;
};

std::vector<std::string> false_statements(Backend& backend) {
  std::vector<std::string> names;
  for (const ProbedStatement& s : probe_arithmetic(backend)) {
    if (!s.holds) names.push_back(s.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(ProbeArithmetic, FindsWhatIsFalse) {
  Liar exact("example", [](Arithmetic& a) { a.exp_ulps = a.tanh_ulps = 0.3; });
  EXPECT_EQ(false_statements(exact), (Names{"exp, f32", "tanh, f32", "exp, f64", "tanh, f64"}));
  Liar wide("example", [](Arithmetic& a) { a.accumulator = DType::f64; });
  EXPECT_EQ(false_statements(wide), Names{"accumulator, f32"});
  Liar divides("eigen", [](Arithmetic& a) { a.division = Division::ieee; });
  EXPECT_EQ(false_statements(divides), (Names{"division, f32", "division, f64"}));
  Liar keeps("eigen", [](Arithmetic& a) { a.flush_to_zero = false; });
  EXPECT_EQ(false_statements(keeps), (Names{"flush to zero, f32", "flush to zero, f64"}));
  Liar in_one("eigen", [](Arithmetic& a) { a.key_block = 0; });
  EXPECT_EQ(false_statements(in_one), (Names{"key block, f32", "key block, f64"}));
  Liar coarse("eigen", [](Arithmetic& a) { a.key_block *= 2; });
  EXPECT_EQ(false_statements(coarse), (Names{"key block, f32", "key block, f64"}));
}

TEST(ProbeArithmetic, SayingLessIsNoLie) {
  Liar modest("example", [](Arithmetic& a) {
    a.exp_ulps = a.log_ulps = a.tanh_ulps = 20;
    a.division = Division::opencl_reciprocal;
    a.key_block = 16;
    a.flush_to_zero = true;
    a.stored_weights = DType::bf16;
  });
  EXPECT_EQ(false_statements(modest), Names{});
}

/// A backend that states one of its conventions wrongly.
class SaysOtherwise : public Liar {
 public:
  explicit SaysOtherwise(std::string Conventions::*field) : Liar("example", [](Arithmetic&) {}), field_(field) {}
  Conventions conventions() const override {
    Conventions c = Liar::conventions();
    c.*field_ = "otherwise";
    return c;
  }

 private:
  std::string Conventions::*field_;
};

TEST(ProbeConventions, AskAboutTheFieldThatTheyReportOn) {
  for (const auto& [lie, value] : kConventionFields) {
    SaysOtherwise backend(value);
    const std::vector<ProbedStatement> statements = probe_conventions(backend);
    ASSERT_EQ(statements.size(), kConventionFields.size());
    for (std::size_t n = 0; n < statements.size(); ++n) {
      EXPECT_EQ(statements[n].name, kConventionFields[n].name);
      EXPECT_EQ(statements[n].holds, statements[n].name != lie) << statements[n].name << " when asked about " << lie;
      EXPECT_EQ(statements[n].observed, Conventions().*kConventionFields[n].value);
    }
  }
}

/// Passes a plan on and rounds the first of two weights to bf16.
class RoundingPlan : public Plan {
 public:
  explicit RoundingPlan(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
  void upload(const Inputs& inputs) override { plan_->upload(inputs); }
  void run() override { plan_->run(); }
  void download(const Outputs& outputs) override {
    plan_->download(outputs);
    const MutableTensor& o = outputs.out;
    for (std::int64_t i = 0; o.shape[3] == 2 && i < o.shape[2]; ++i) {
      const double last = load(o.data, o.dtype, o.offset(0, 0, i, 1));
      std::uint64_t rounded = 0;
      store(&rounded, DType::bf16, 0, load(o.data, o.dtype, o.offset(0, 0, i, 0)) / last);
      store(o.data, o.dtype, o.offset(0, 0, i, 0), load(&rounded, DType::bf16, 0) * last);
    }
  }

 private:
  std::unique_ptr<Plan> plan_;
};

class RoundsWeights : public Liar {
 public:
  RoundsWeights() : Liar("example", [](Arithmetic&) {}) {}
  std::unique_ptr<Plan> prepare(const Call& p) override { return std::make_unique<RoundingPlan>(Liar::prepare(p)); }
};

TEST(ProbeArithmetic, FindsWeightsOfFewerBits) {
  RoundsWeights rounds;
  EXPECT_EQ(false_statements(rounds), (Names{"exp, f32", "stored weights, f32", "exp, f64", "stored weights, f64"}));
}

}  // namespace
}  // namespace attest

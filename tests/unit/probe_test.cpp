// Statements are probed: a backend that says more of its arithmetic than it does, or other conventions, is found out.
#include "harness/probe/probe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// A backend of the registry that says something else of itself.
class Liar : public faulty::BackendAround {
 public:
  Liar(const char* name, std::function<void(Arithmetic&)> lie)
      : BackendAround(faulty::make_named(registered_backends(), name)), lie_(std::move(lie)) {}
  Arithmetic arithmetic(const Call& p) const override {
    Arithmetic a = BackendAround::arithmetic(p);
    lie_(a);
    return a;
  }

 private:
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
  Liar exact("example", [](Arithmetic& a) { a.tanh_ulps = 0.3; });
  EXPECT_EQ(false_statements(exact), (Names{"tanh_ulps, f64", "tanh_ulps, f32", "tanh_ulps, f16", "tanh_ulps, bf16"}));
  Liar perfect("example", [](Arithmetic& a) { a.exp_ulps = 0.1; });
  EXPECT_EQ(false_statements(perfect), (Names{"exp_ulps, f64", "exp_ulps, f32", "exp_ulps, f16"}));
  Liar wide("example", [](Arithmetic& a) { a.accumulator = DType::f64; });
  EXPECT_EQ(false_statements(wide), (Names{"accumulator, f32", "accumulator, f16", "accumulator, bf16"}));
  Liar divides("eigen", [](Arithmetic& a) { a.division = Division::ieee; });
  EXPECT_EQ(false_statements(divides), (Names{"division, f64", "division, f32"}));
  Liar keeps("eigen", [](Arithmetic& a) { a.flush_to_zero = false; });
  EXPECT_EQ(false_statements(keeps), (Names{"flush_to_zero, f64", "flush_to_zero, f32", "flush_to_zero, bf16"}));
  Liar in_one("eigen", [](Arithmetic& a) { a.key_block = 0; });
  EXPECT_EQ(false_statements(in_one), (Names{"key_block, f64", "key_block, f32", "key_block, bf16"}));
  Liar coarse("eigen", [](Arithmetic& a) { a.key_block *= 2; });
  EXPECT_EQ(false_statements(coarse), (Names{"key_block, f64", "key_block, f32", "key_block, bf16"}));
}

TEST(ProbeArithmetic, FindsWhatIsFalseOfGradients) {
  const auto in_all_types = [](const std::string& name) {
    return Names{name + ", f64", name + ", f32", name + ", f16", name + ", bf16"};
  };
  Liar keeps("example", [](Arithmetic& a) { a.kept_weights = true; });
  EXPECT_EQ(false_statements(keeps), in_all_types("kept_weights"));
  Liar sums("example", [](Arithmetic& a) { a.delta_from_weights = true; });
  EXPECT_EQ(false_statements(sums), in_all_types("delta_from_weights"));
  Liar stores("example", [](Arithmetic& a) { a.stored_score_gradients = DType::bf16; });
  EXPECT_EQ(false_statements(stores), in_all_types("stored_score_gradients"));
  Liar waits("example", [](Arithmetic& a) { a.stored_head_gradients = DType::f16; });
  EXPECT_EQ(false_statements(waits), in_all_types("stored_head_gradients"));
  const std::unique_ptr<Backend> changes = faulty::make_named(faulty::faulty_backends(), "backward_not_deterministic");
  EXPECT_EQ(false_statements(*changes), (Names{"varying_order, f64", "varying_order, f32"}));
}

TEST(ProbeArithmetic, AsksNothingOfSumsThatAreMergedFromRuns) {
  Liar divides("eigen", [](Arithmetic& a) {
    a.division = Division::ieee;
    a.parts = 2;
  });
  EXPECT_EQ(false_statements(divides), Names{});
  Liar exact("example", [](Arithmetic& a) {
    a.tanh_ulps = 0.3;
    a.parts = 2;
  });
  EXPECT_EQ(false_statements(exact), (Names{"tanh_ulps, f64", "tanh_ulps, f32", "tanh_ulps, f16", "tanh_ulps, bf16"}));
}

/// States more of calls with several heads than it needs.
class WideForHeads : public Liar {
 public:
  WideForHeads() : Liar("example", [](Arithmetic&) {}) {}
  Arithmetic arithmetic(const Call& p) const override {
    Arithmetic a = Liar::arithmetic(p);
    if (p.query_heads > 1) a.exp_ulps = 500;
    if (p.key_dim > 64) a.key_block = 16;
    return a;
  }
};

TEST(ProbeArithmetic, AsksForWhatIsStatedOfLargerCalls) {
  WideForHeads backend;
  EXPECT_EQ(false_statements(backend), Names{}) << "of one head it states the truth";
  const std::vector<Call> calls = {parse_case("seq=4 dim=4"),
                                   parse_case("heads=8/2 seq=33x65 dim=40 causal align=top-left"),
                                   parse_case("seq=5 dim=128")};
  Names names;
  for (const ProbedStatement& s : probe_arithmetic_of(backend, calls)) {
    if (!s.holds) names.push_back(s.name);
  }
  EXPECT_EQ(names, (Names{"exp_ulps, f32 heads=8/2", "key_block, f32 dim=128"}));
}

TEST(ProbeArithmetic, NamesTheOutputThatShowsIt) {
  Liar wide("example", [](Arithmetic& a) { a.accumulator = DType::f64; });
  int told = 0;
  for (const ProbedStatement& s : probe_arithmetic(wide)) {
    if (s.holds) continue;
    ++told;
    EXPECT_TRUE(s.shown.starts_with("o[0,0,0,0] = ")) << s.shown;
    EXPECT_NE(s.shown.find("seq=1x256 dim=1"), std::string::npos) << s.shown;
    EXPECT_NE(s.verdict().find(s.shown), std::string::npos);
  }
  EXPECT_EQ(told, 3);
}

/// Has one storage type, and no answer for calls in others.
class OneType : public faulty::BackendAround {
 public:
  OneType() : BackendAround(faulty::make_example()) {}
  std::optional<Refusal> refuse(const Call& p) const override {
    return p.dtype == DType::f64 ? BackendAround::refuse(p) : Refusal{"float64 alone"};
  }
  Arithmetic arithmetic(const Call& p) const override {
    if (p.dtype != DType::f64) throw BackendError("asked of what is refused");
    return BackendAround::arithmetic(p);
  }
};

TEST(ProbeArithmetic, ToldOnceForAllTypesThatShowIt) {
  Liar exact("example", [](Arithmetic& a) {
    a.tanh_ulps = 0.3;
    a.log_ulps = 50;
  });
  Names names;
  for (const ProbedStatement& s : told_once(probe_arithmetic(exact))) names.push_back(s.name);
  ASSERT_EQ(names.size(), 2u) << testing::PrintToString(names);
  EXPECT_NE(std::find(names.begin(), names.end(), "tanh_ulps, f64, f32, f16, bf16"), names.end());
  EXPECT_TRUE(names[0].starts_with("log_ulps, f64, f32") || names[1].starts_with("log_ulps, f64, f32"));
}

TEST(ProbeArithmetic, AsksNothingOfRefusedTypes) {
  OneType backend;
  EXPECT_EQ(false_statements(backend), Names{});
}

TEST(ProbeArithmetic, FindsChunksOfLinearAttention) {
  const auto lies = [](std::int64_t chunk) { return [chunk](Arithmetic& a) { a.state_chunk = chunk; }; };
  const Names every = {"state_chunk, f64", "state_chunk, f32", "state_chunk, bf16"};
  const auto of_chunks = [](Backend& backend) {
    Names names;
    for (const ProbedStatement& s : probe_arithmetic(backend)) {
      if (s.name.starts_with("state_chunk") && !s.name.ends_with("f16") && !s.holds) names.push_back(s.name);
    }
    return names;
  };
  Liar honest("example", lies(0)), wide("example", lies(16));
  EXPECT_EQ(of_chunks(honest), Names{});
  Names named = every;
  named.pop_back();  // of_chunks leaves out names that end with f16, bf16 among them
  EXPECT_EQ(of_chunks(wide), named);
#if defined(ATTEST_HAS_SIMD)
  Liar in_chunks("simd", lies(32)), denies("simd", lies(0)), doubles("simd", lies(64));
  EXPECT_EQ(of_chunks(in_chunks), Names{});
  EXPECT_EQ(of_chunks(denies), named);
  EXPECT_EQ(of_chunks(doubles), named);
#endif
}

TEST(ProbeArithmetic, SayingALittleLessIsNoLie) {
  Liar modest("example", [](Arithmetic& a) {
    a.exp_ulps = a.log_ulps = a.tanh_ulps = 5;
    a.division = Division::opencl_reciprocal;
    a.flush_to_zero = true;
  });
  EXPECT_EQ(false_statements(modest), Names{});
}

TEST(ProbeArithmetic, SayingMuchLessIsAWayToPass) {
  Liar coarse("example", [](Arithmetic& a) {
    a.exp_ulps = a.log_ulps = a.tanh_ulps = 50;
    a.key_block = 16;
  });
  int wide = 0;
  for (const ProbedStatement& s : probe_arithmetic(coarse)) {
    EXPECT_EQ(s.holds, !s.too_wide) << s.name;
    wide += s.too_wide;
  }
  EXPECT_GE(wide, 8);
}

/// Hands out NaN.
class NoAttention : public Liar {
 public:
  NoAttention() : Liar("example", [](Arithmetic&) {}) {}
  std::unique_ptr<Plan> prepare(const Call& p) override {
    class Nothing : public Plan {
     public:
      void upload(const Inputs&) override {}
      void run() override {}
      void download(const Outputs& outputs) override {
        const MutableTensor& o = outputs.out();
        each_index(o.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
          store(o.data, o.dtype, o.offset(b, h, l, d), kNaN);
        });
      }
    };
    return p.dtype == DType::f64 ? std::make_unique<Nothing>() : Liar::prepare(p);
  }
};

TEST(ProbeArithmetic, SaysNothingMoreWhereAPlainCaseFails) {
  NoAttention nothing;
  EXPECT_EQ(false_statements(nothing), Names{"plain case, f64"});
  for (const ProbedStatement& s : probe_arithmetic(nothing)) {
    EXPECT_TRUE(s.name == "plain case, f64" || !s.name.ends_with(", f64")) << s.name;
  }
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
    // One statement is false and it is this one: a name that matches no field would leave every statement true.
    const auto is_false = [](const ProbedStatement& s) { return !s.holds; };
    ASSERT_EQ(std::count_if(statements.begin(), statements.end(), is_false), 1) << lie;
    EXPECT_EQ(std::find_if(statements.begin(), statements.end(), is_false)->name, lie);
    for (std::size_t n = 0; n < statements.size(); ++n) {
      EXPECT_EQ(statements[n].name, kConventionFields[n].name);
      EXPECT_EQ(statements[n].holds, statements[n].name != lie) << statements[n].name << " when asked about " << lie;
      const Conventions expected = statements[n].name == lie ? Conventions() : backend.conventions();
      EXPECT_EQ(statements[n].observed, expected.*kConventionFields[n].value);
    }
  }
}

/// Does neither softcap nor additive masks, and says so when asked.
class Refuses : public Liar {
 public:
  Refuses() : Liar("example", [](Arithmetic&) {}) {}
  std::optional<Refusal> refuse(const Call& p) const override {
    return p.softcap ? std::optional(Refusal{"no softcap"}) : Liar::refuse(p);
  }
};

TEST(ProbeConventions, AnHonestRefusalIsNotFalse) {
  Refuses backend;
  bool refused = false;
  for (const ProbedStatement& s : probe_conventions(backend)) {
    EXPECT_TRUE(s.holds) << s.name;
    if (s.name != "softcap") continue;
    refused = s.refused;
    EXPECT_EQ(s.verdict(), "refused");
  }
  EXPECT_TRUE(refused);
}

TEST(ProbeConventions, ARefusalThatIsStatedButDoesNotHappenIsFalse) {
  class SaysRefused : public Liar {
   public:
    SaysRefused() : Liar("example", [](Arithmetic&) {}) {}
    Conventions conventions() const override {
      Conventions c;
      c.softcap = "refused";
      return c;
    }
  } backend;
  int lies = 0;
  for (const ProbedStatement& s : probe_conventions(backend)) lies += !s.holds;
  EXPECT_EQ(lies, 1);
}

TEST(Probe, AFalseStatementIsFound) {
  // These backends state attest's own conventions and do something else.
  const std::vector<std::array<std::string, 3>> lies = {{"lse_in_base_2", "lse_base", "2"},
                                                        {"nan_on_empty_row", "empty_row", "nan"},
                                                        {"window_off_by_one", "window", "W keys"},
                                                        {"hidden_nan_leaks", "hidden_nan", "leaks"},
                                                        {"lse_plus_infinity", "lse_of_empty_row", "inf"},
                                                        {"cap_after_mask", "softcap", "after bias"},
                                                        {"softcap_dropped", "align", "as asked"}};
  for (const auto& [name, field, observed] : lies) {
    const BackendSet set(faulty::faulty_backends(), {name}, {1, ""});
    std::map<std::string, std::string> found;
    for (const ProbedStatement& s : probe_conventions(*set.all().front())) found[s.name] = s.observed;
    ASSERT_TRUE(found.contains(field)) << field;
    EXPECT_EQ(found[field], observed) << name;
  }
}

}  // namespace
}  // namespace attest

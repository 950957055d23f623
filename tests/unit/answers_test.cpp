// What a backend says about a call: asked once for a case, whatever is done with the case then.
#include "harness/verdict/answers.h"

#include <map>

#include "backends/plugin/attest/attest_plugin.hpp"
#include "harness/backends/plugin/plugin_backend.h"
#include "harness/speed/timing/timed_case.h"
#include "harness/speed/timing/timed_plan.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "tests/faulty/around.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Counts what it is asked, by the call.
class Counting : public faulty::BackendAround {
 public:
  Counting() : BackendAround(faulty::make_example()) {}
  std::optional<Refusal> refuse(const Call& call) const override {
    ++refusals[print_call(call)];
    if (throws) throw BackendError("no answer");
    if (refuses) return Refusal{"not today"};
    return BackendAround::refuse(call);
  }
  Arithmetic arithmetic(const Call& call) const override {
    ++arithmetics[print_call(call)];
    Arithmetic a = BackendAround::arithmetic(call);
    if (lse_ulps > 0) {
      Arithmetic own = a;
      own.log_ulps = lse_ulps;
      a.of_results = {{TensorId::lse, own}};
    }
    return a;
  }
  Conventions conventions() const override {
    ++asked_for_conventions;
    return {};
  }

  bool refuses = false, throws = false;
  double lse_ulps = 0;  ///< of lse alone, where it has its own
  mutable std::map<std::string, int> refusals, arithmetics;
  mutable int asked_for_conventions = 0;
};

constexpr const char* kLine = "heads=2 seq=5x7 dim=4 causal align=top-left";
using Counts = std::map<std::string, int>;

TEST(Answers, ACheckOfACaseAsksOnce) {
  Counting backend;
  const Case source = case_from_line(kLine);
  const std::string call = print_call(source.problem.call);
  PreparedCase prepared(source, {&backend}, 1);
  prepared.diagnose_failures();
  EXPECT_EQ(prepared.check(backend).status, Status::pass);
  EXPECT_EQ(backend.refusals[call], 1);
  EXPECT_EQ(backend.arithmetics, (Counts{{call, 1}}));
  EXPECT_EQ(backend.asked_for_conventions, 1);
  EXPECT_EQ(prepared.check(backend).status, Status::pass);
  (void)prepared.answers_of(backend);
  EXPECT_EQ(backend.refusals[call], 1);
  EXPECT_EQ(backend.arithmetics, (Counts{{call, 1}}));
}

TEST(Answers, AnotherBackendIsAskedItself) {
  Counting backend, fresh;
  const Case source = case_from_line(kLine);
  const PreparedCase prepared(source, {&backend}, 1);
  EXPECT_EQ(prepared.check(fresh).status, Status::pass);
  EXPECT_EQ(fresh.arithmetics, (Counts{{print_call(source.problem.call), 1}}));
}

TEST(Answers, ABenchmarkAsksOnce) {
  Counting backend;
  const Case source = case_from_line(kLine);
  TimedCase shared(source, {&backend}, 1, 1);
  const TimedPlan plan(backend, shared);
  EXPECT_EQ(plan.wrong().kind, NoSpeed::none);
  EXPECT_EQ(backend.arithmetics, (Counts{{print_call(source.problem.call), 1}}));
}

/// The arithmetic of all results comes from one question, whatever the interface asks for one by one.
TEST(Answers, AsAPluginABackendIsAskedOnce) {
  static const Counting* made = nullptr;
  const BackendEntry entries[] = {{"counting",
                                   [](const Context&) -> std::unique_ptr<Backend> {
                                     auto backend = std::make_unique<Counting>();
                                     backend->lse_ulps = 9;
                                     made = backend.get();
                                     return backend;
                                   },
                                   ""}};
  const plugin::Table library(entries);
  const PluginBackend outside(std::make_shared<const PluginTable>(read_plugin_table(library.get())), 0, {1, ""});
  const Call call = parse_case("seq=4 dim=4 out=o,lse,weights");
  EXPECT_EQ(outside.arithmetic(call).of(TensorId::lse).log_ulps, 9);
  EXPECT_NE(outside.arithmetic(call).of(TensorId::out).log_ulps, 9);
  EXPECT_EQ(made->arithmetics, (Counts{{print_call(call), 2}}));
}

TEST(Answers, RefusalsAndFaultsTravelToo) {
  const Case source = case_from_line(kLine);
  Counting refuses, throws;
  refuses.refuses = throws.throws = true;
  const PreparedCase prepared(source, std::vector<Backend*>{&refuses, &throws}, 1);
  const Verdict refused = prepared.check(refuses), failed = prepared.check(throws);
  EXPECT_EQ(refused.status, Status::refused);
  EXPECT_EQ(refused.reason, "not today");
  EXPECT_EQ(failed.cause.kind, Cause::threw);
  const Counts once = {{print_call(source.problem.call), 1}};
  EXPECT_EQ(refuses.refusals, once);
  EXPECT_EQ(throws.refusals, once);
  EXPECT_EQ(refuses.arithmetics, Counts{});
  EXPECT_EQ(refuses.asked_for_conventions, 0);
}

}  // namespace
}  // namespace attest

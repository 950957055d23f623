// Suites as GoogleTest: one test for each case and backend, named <suite>.<backend>/<number>_<case>, so that filters,
// shards and the XML see each. Arguments left over by GoogleTest name the suites; none means smoke.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <memory>

#include "backends/registry.h"
#include "harness/cases/suites.h"
#include "harness/isolation/backend_set.h"
#include "harness/verdict/prepared_case.h"
#include "harness/verdict/refusal_lists.h"

namespace attest {
namespace {

class CaseTest : public testing::Test {
 public:
  CaseTest(Backend* backend, std::shared_ptr<const Case> source) : backend_(backend), source_(std::move(source)) {}

  void TestBody() override {
    const PreparedCase prepared(*source_, {backend_}, 2);
    if (prepared.has_golden()) expect_passes(prepared.check_reference());
    const Verdict verdict = prepared.check(*backend_);
    expect_passes(verdict);
    RecordProperty("verdict", std::string(name_of(verdict.status)));
    const std::vector<std::string> problems = compare_refusals({verdict});
    EXPECT_TRUE(problems.empty()) << problems.front();
  }

 private:
  static void expect_passes(const Verdict& verdict) {
    EXPECT_FALSE(is_failure(verdict)) << verdict.reason << "\n" << verdict.repro;
  }

  Backend* backend_;
  std::shared_ptr<const Case> source_;
};

std::string test_name(std::size_t number, const std::string& label) {
  std::string name = std::to_string(number) + "_";
  for (char c : label.substr(label.find_last_of('/') + 1)) {
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

void register_suite(const std::string& suite, const std::vector<Backend*>& backends) {
  std::size_t number = 0;
  for (Case& one : load_suite(find_suite(suite))) {
    const auto source = std::make_shared<const Case>(std::move(one));
    ++number;
    for (Backend* backend : backends) {
      const std::string group = suite + "." + backend->identity().name;
      testing::RegisterTest(group.c_str(), test_name(number, source->label).c_str(), nullptr, source->label.c_str(),
                            __FILE__, __LINE__,
                            [backend, source]() -> testing::Test* { return new CaseTest(backend, source); });
    }
  }
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::vector<std::string> suites(argv + 1, argv + argc);
  if (suites.empty()) suites = {"smoke"};
  const attest::BackendSet backends(attest::registered_backends(), {}, {2, ""});
  for (const std::string& suite : suites) attest::register_suite(suite, backends.all());
  const int failed = RUN_ALL_TESTS();
  // A filter that leaves nothing is no success.
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test was run\n");
    return 3;
  }
  return failed;
}

// The backends that a command works with.
#include "harness/backends/set/backend_set.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

class Nothing : public Backend {
 public:
  Identity identity() const override { return {"here", "", ""}; }
  int contract() const override { return 3; }
  std::optional<Refusal> refuse(const Call&) const override { return Refusal{"everything"}; }
  Arithmetic arithmetic(const Call&) const override { return {}; }
  std::unique_ptr<Plan> prepare(const Call&) override { return nullptr; }
};

std::unique_ptr<Backend> make_nothing(const Context&) { return std::make_unique<Nothing>(); }
std::unique_ptr<Backend> no_device(const Context&) { throw BackendUnavailable("no device"); }

const BackendEntry kRegistry[] = {
    {"here", make_nothing, ""}, {"deviceless", no_device, ""}, {"unbuilt", nullptr, "its library is missing"}};

TEST(BackendSet, WithoutNamesTakesThoseThatCanBeHad) {
  const BackendSet set(kRegistry, {}, {1, ""});
  ASSERT_EQ(set.all().size(), 1u);
  EXPECT_EQ(set.all()[0]->identity().name, "here");
  ASSERT_EQ(set.unavailable().size(), 2u);
  EXPECT_EQ(set.unavailable()[0].name, "deviceless");
  EXPECT_EQ(set.unavailable()[0].reason, "no device");
  EXPECT_EQ(set.unavailable()[1].reason, "its library is missing");
}

TEST(BackendSet, ANamedOneMustBeThere) {
  EXPECT_EQ(BackendSet(kRegistry, {"here"}, {1, ""}).all().size(), 1u);
  EXPECT_EQ(complaint([] {
              BackendSet(kRegistry, {"here", "unbuilt"}, {1, ""});
            }),
            "backend unbuilt can't be had here: its library is missing");
  EXPECT_NE(complaint([] { BackendSet(kRegistry, {"heer"}, {1, ""}); }).find("here"), std::string::npos);
  EXPECT_NE(complaint([] { BackendSet({kRegistry + 1, 2}, {}, {1, ""}); }), "");
}

TEST(BackendSet, NamesAreSplitAtCommas) {
  EXPECT_EQ(split_names("a,b,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(split_names("").empty());
  for (const char* wrong : {"a,,b", ",a", "a,"}) EXPECT_NE(complaint([&] { split_names(wrong); }), "") << wrong;
}

/// The same under other names: it calls itself "here".
std::string complaint_about(const std::vector<BackendEntry>& registry) {
  return complaint([&] { BackendSet(registry, {}, {1, ""}); });
}

TEST(BackendSet, ABackendKeepsTheNameOfTheRegistry) {
  EXPECT_EQ(complaint_about({{"here", make_nothing, ""}}), "");
  const std::string other = complaint_about({{"there", make_nothing, ""}});
  EXPECT_NE(other.find("\"there\""), std::string::npos) << other;
}

TEST(BackendSet, NobodyIsCalledAsTheReference) {
  EXPECT_NE(complaint_about({{"here", make_nothing, ""}, {"reference", make_nothing, ""}}).find("\"reference\""),
            std::string::npos);
}

TEST(BackendSet, NoTwoAreCalledAlike) {
  EXPECT_NE(complaint_about({{"here", make_nothing, ""}, {"here", make_nothing, ""}}), "");
}

}  // namespace
}  // namespace attest

#include "harness/backends/plugin/foreign_backends.h"

#include <gtest/gtest.h>

#include <utility>

#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

constexpr const char* kNoPython =
    "there is no Python in this program; install attest for Python and say `python -m attest` in place of `attest`";

TEST(ForeignBackends, AProgramWithoutAnInterpreterSaysSo) {
  EXPECT_EQ(complaint([] { backends_in("python:mine:attention"); }), kNoPython);
  EXPECT_EQ(complaint([] { make_foreign_backend("python:mine:attention", "attention", {}); }), kNoPython);
}

TEST(ForeignBackends, AnInterpreterIsGivenTheObjectWithoutItsPrefix) {
  std::string asked;
  const PythonObjects before =
      std::exchange(python_objects(), {[&](const std::string& object) -> std::vector<std::string> {
                                         asked = object;
                                         return {"mine"};
                                       },
                                       [&](const std::string& object, const std::string& name, const Context& context) {
                                         asked = object + " " + name + " " + std::to_string(context.threads);
                                         return std::unique_ptr<Backend>();
                                       }});
  EXPECT_EQ(backends_in("python:mine:attention"), std::vector<std::string>{"mine"});
  EXPECT_EQ(asked, "mine:attention");
  EXPECT_EQ(make_foreign_backend("python:mine:attention", "mine", {3, ""}), nullptr);
  EXPECT_EQ(asked, "mine:attention mine 3");
  python_objects() = before;
}

TEST(ForeignBackends, WhatIsNoObjectIsALibrary) {
  EXPECT_NE(complaint([] { backends_in("/nowhere/libmine.so"); }), "");
}

}  // namespace
}  // namespace attest

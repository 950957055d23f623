// Causes: each has a name of its own, by which files are read. tests/docs/names.sh holds them against the documents.
#include "harness/comparison/cause.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace attest {
namespace {

TEST(Causes, AreReadAsTheyAreWritten) {
  std::set<std::string> texts;
  for (const Cause kind : values_of<Cause>()) {
    if (kind == Cause::other) continue;
    const FailureCause cause{kind};
    EXPECT_EQ(cause_from_text(cause.text()), cause) << cause.text();
    EXPECT_TRUE(texts.insert(cause.text()).second) << cause.text() << " is the name of two";
    if (kind == Cause::none) continue;
    const FailureCause of_output{kind, "present_k"};
    EXPECT_EQ(cause_from_text(of_output.text()), of_output) << of_output.text();
  }
  EXPECT_EQ((FailureCause{Cause::outside_bound, "o"}.text()), "o: outside the bound");
  EXPECT_EQ(name_of(Cause::unwritten), "output left unwritten");
  EXPECT_EQ(name_of(Cause::fresh_plan_only), "right in a fresh plan only");
  EXPECT_EQ(name_of(Cause::crashed), "crashed");
  EXPECT_EQ(name_of(Cause::no_plugin_member), "not in the plug-in interface");
}

/// Of an older attest, of a newer one, or of nobody's.
TEST(Causes, AnUnknownTextIsKept) {
  for (const char* text :
       {"changed o after download had returned", "o: beside the bound", "other", "o: other", "o: "}) {
    EXPECT_EQ(cause_from_text(text).kind, Cause::other) << text;
    EXPECT_EQ(cause_from_text(text).text(), text);
  }
  EXPECT_TRUE(cause_from_text("").empty());
}

}  // namespace
}  // namespace attest

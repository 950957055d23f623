// A case as one argument of a command line, or as several.
#include "harness/cases/case_arguments.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

using Texts = std::vector<std::string>;

TEST(CaseArguments, WordsOfOneLineAreOneCase) {
  EXPECT_EQ(joined_arguments({"seq=4", "dim=4"}), Texts{"seq=4 dim=4"});
  EXPECT_EQ(joined_arguments({"seq=4 dim=4", "causal"}), Texts{"seq=4 dim=4 causal"});
}

TEST(CaseArguments, AKeyThatIsThereAlreadyBeginsTheNext) {
  EXPECT_EQ(joined_arguments({"seq=4", "dim=4", "seq=5", "dim=8", "causal"}),
            (Texts{"seq=4 dim=4", "seq=5 dim=8 causal"}));
  EXPECT_EQ(joined_arguments({"seq=4 dim=4", "dim=4 seq=5"}), (Texts{"seq=4 dim=4", "dim=4 seq=5"}));
}

TEST(CaseArguments, FilesAndStandardInputStandAlone) {
  EXPECT_EQ(joined_arguments({"a.safetensors", "seq=4", "dim=4", "-", "b.safetensors"}),
            (Texts{"a.safetensors", "seq=4 dim=4", "-", "b.safetensors"}));
  EXPECT_EQ(joined_arguments({""}), Texts{""});
  EXPECT_TRUE(joined_arguments({}).empty());
}

}  // namespace
}  // namespace attest

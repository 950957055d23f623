// Results that a file holds: each stage is compared, at its own tolerance.
#include "harness/verdict/golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "harness/base/data_folder.h"
#include "harness/cases/case_file.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

Case walkthrough(const std::string& name) {
  return case_from_file(data_folder("golden") / "walkthroughs" / (name + ".safetensors"));
}

/// Each stage of a file that only this comparison reads: a change of one element is seen.
TEST(Walkthroughs, AWrongStageIsFound) {
  const auto fails = [](const std::string& file, const std::string& name, double change) {
    Case source = walkthrough(file);
    FileTensor& tensor = source.golden->stages.at(name);
    double value = tensor.at(0) + change;
    std::memcpy(tensor.bytes.data(), &value, sizeof value);
    const CaseInputs inputs = *source.inputs;
    return GoldenCheck(source, inputs.views()).compare_reference().failed();
  };
  EXPECT_FALSE(fails("three_tokens", "hidden", 0));
  EXPECT_TRUE(fails("three_tokens", "hidden", 1));
  EXPECT_TRUE(fails("first_principles_causal", "added", 1));
  EXPECT_TRUE(fails("first_principles", "statistics", 1e-8));
  EXPECT_TRUE(fails("first_principles", "score_row_sums", 2e-8));
  EXPECT_TRUE(fails("first_principles", "output", 2e-8));
  // One with a tolerance of its own.
  EXPECT_FALSE(fails("scale_mask_softmax", "raw_scores", 0.002));
  EXPECT_TRUE(fails("scale_mask_softmax", "raw_scores", 0.02));
  EXPECT_TRUE(fails("scale_mask_softmax", "variance_before", 0.02));
}

TEST(Walkthroughs, ATolerancePerStageIsChecked) {
  const auto with = [](const std::string& tolerances) {
    TensorFile file = read_safetensors(data_folder("golden") / "walkthroughs" / "scale_mask_softmax.safetensors");
    file.metadata["tolerances"] = tolerances;
    return complaint([&] { case_from_tensors(file, "file"); });
  };
  EXPECT_EQ(with("weights=0.5"), "");
  EXPECT_NE(with("nothing=0.5"), "");
  EXPECT_NE(with("weights"), "");
  EXPECT_NE(with("weights=-1"), "");
  EXPECT_NE(with("weights=x"), "");
}

}  // namespace
}  // namespace attest

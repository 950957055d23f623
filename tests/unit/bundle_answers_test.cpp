#include "harness/run/bundle_answers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "harness/base/user_error.h"
#include "harness/run/bundle.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

class BundleFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("bundle_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "answers");
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A bundle of this line, and an answer that is as near as its type allows.
  void make(const std::string& line) {
    const Case source = case_from_line(line);
    one_ = describe(source, 1, "");
    const TensorFile truth = bundle_file(source, {}, 1);
    write_safetensors(folder_ / one_.file, truth);
    for (const BundleResult& result : one_.results) {
      FileTensor tensor{"F32", result.shape, {}};
      const FileTensor& expected = truth.tensors.at("expected." + result.name);
      for (std::int64_t n = 0; n < expected.size(); ++n) {
        const auto number = static_cast<float>(expected.at(n));
        const auto bytes = std::as_bytes(std::span(&number, 1));
        tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
      }
      answer_.tensors[result.name] = tensor;
    }
  }
  Verdict judge() {
    write_safetensors(folder_ / "answers" / one_.file, answer_);
    return verify(folder_, one_, folder_ / "answers");
  }
  float& number(const std::string& result, std::size_t n) {
    return reinterpret_cast<float*>(answer_.tensors.at(result).bytes.data())[n];
  }

  fs::path folder_;
  BundleCase one_;
  TensorFile answer_;
};

TEST_F(BundleFolder, JudgesEachElementByItsBound) {
  make("heads=2 seq=3x5 dim=4 causal align=bottom-right out=o,lse");
  const Verdict right = judge();
  EXPECT_EQ(right.status, Status::pass) << right.reason;
  EXPECT_EQ(right.case_line, one_.line);
  ASSERT_TRUE(right.error_over_bound);
  EXPECT_LT(*right.error_over_bound, 1);

  number("lse", 4) += 1e-3F;
  const Verdict wrong = judge();
  EXPECT_EQ(wrong.status, Status::fail);
  EXPECT_EQ(wrong.cause.kind, Cause::outside_bound);
  EXPECT_EQ(wrong.worst->output, "lse");
  EXPECT_EQ(wrong.worst->index, (Index4{0, 1, 1, 0}));

  number("lse", 4) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(judge().cause.kind, Cause::not_finite);
}

TEST_F(BundleFolder, WantsANaNWhereAVisibleOneIs) {
  make("seq=2x4 dim=2 poison=visible:v");
  EXPECT_EQ(judge().status, Status::pass);
  number("o", 0) = 0;
  number("o", 1) = 0;
  number("o", 2) = 0;
  EXPECT_EQ(judge().cause.kind, Cause::nan_lost);
}

TEST_F(BundleFolder, TakesNoAnswerThatIsNotTheCases) {
  make("heads=2 seq=3x5 dim=4 out=o,lse");
  EXPECT_EQ(judge().status, Status::pass);
  const TensorFile right = answer_;

  answer_.tensors.at("o").shape = {2, 1, 3, 4};
  Verdict verdict = judge();
  EXPECT_EQ(verdict.cause.kind, Cause::no_answer);
  EXPECT_NE(verdict.reason.find("o has shape [2,1,3,4]; [1,2,3,4] is wanted"), std::string::npos) << verdict.reason;

  answer_ = right;
  answer_.tensors.erase("lse");
  EXPECT_EQ(judge().cause.kind, Cause::no_answer);

  answer_ = right;
  FileTensor& o = answer_.tensors.at("o");
  o.dtype = "F16";
  o.bytes.resize(o.bytes.size() / 2);
  EXPECT_NE(judge().reason.find("o is F16; F32 or a wider type is wanted"), std::string::npos);

  fs::remove(folder_ / "answers" / one_.file);
  EXPECT_EQ(verify(folder_, one_, folder_ / "answers").status, Status::fail);
  EXPECT_EQ(verify(folder_, one_, folder_ / "answers", Status::refused).status, Status::refused);

  std::ofstream(folder_ / "answers" / one_.file) << "nothing";
  EXPECT_EQ(verify(folder_, one_, folder_ / "answers").cause.kind, Cause::no_answer);
  EXPECT_EQ(verify(folder_, one_, folder_ / "answers", Status::refused).status, Status::fail);
}

/// What is wrong with the bundle is no fault of the answer.
TEST_F(BundleFolder, SaysWhatItsOwnFileLacks) {
  make("seq=3x5 dim=4 out=o,lse");
  TensorFile truth = read_safetensors(folder_ / one_.file);
  truth.tensors.erase("bound.lse");
  write_safetensors(folder_ / one_.file, truth);
  try {
    judge();
    FAIL() << "it was judged";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor \"bound.lse\" is missing"), std::string::npos) << error.what();
  }
}

TEST_F(BundleFolder, TakesAWiderTypeAsItIs) {
  make("seq=3x5 dim=4 dtype=bf16");
  EXPECT_EQ(one_.results.front().dtype, "BF16");
  EXPECT_EQ(judge().status, Status::pass);
}

/// Of packed sequences there are rows that exist, and nothing between them.
TEST_F(BundleFolder, HoldsRowsThatThereAre) {
  make("batch=3 heads=2 seq=6 dim=4 lengths=q:6,0,3/k:6,0,3 layout=thd gap=2 out=o,lse");
  EXPECT_EQ(one_.results.front().shape, (Shape{9, 2, 4}));
  EXPECT_EQ(judge().status, Status::pass);
  number("o", 70) += 1;
  EXPECT_EQ(judge().status, Status::fail);
}

}  // namespace
}  // namespace attest

// What a file says of the results that it holds.
#include "harness/cases/file_golden.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

TensorFile with_metadata(const std::map<std::string, std::string>& metadata) {
  TensorFile file;
  file.tensors["q"] = {"F64", {1}, std::vector<std::byte>(8)};
  file.tensors["output"] = {"F64", {1}, std::vector<std::byte>(8)};
  file.metadata = metadata;
  return file;
}

std::optional<Golden> golden_of(const std::map<std::string, std::string>& metadata) {
  return read_golden(with_metadata(metadata), "file", {"q"});
}

std::string complaint_about(const std::map<std::string, std::string>& metadata) {
  return complaint([&] { golden_of(metadata); });
}

TEST(FileGolden, IsWhatIsNoInput) {
  const auto golden = golden_of({{"tolerance", "5e-5"}, {"about", "a page"}, {"tokens", "the cat"}});
  ASSERT_TRUE(golden);
  EXPECT_EQ(golden->stages.size(), 1u);
  EXPECT_TRUE(golden->stages.contains("output"));
  EXPECT_EQ(golden->tolerance, 5e-5);
  EXPECT_EQ(golden->relative, 0);
  EXPECT_EQ(golden->about, "a page");
  EXPECT_EQ(golden->tokens, (std::vector<std::string>{"the", "cat"}));
  EXPECT_FALSE(read_golden(with_metadata({}), "file", {"q", "output"}));
}

TEST(FileGolden, OfAProducerHasItsArithmetic) {
  const auto single = golden_of({{"producer", "float32 accumulation, exp within 4 ulps (assumed)"}});
  ASSERT_TRUE(single && single->producer);
  EXPECT_EQ(single->producer->accumulator, DType::f32);
  EXPECT_EQ(single->producer->exp_ulps, 4);
  EXPECT_TRUE(single->producer->normalised_before_storage);
  EXPECT_EQ(golden_of({{"producer", "float64 accumulation"}})->producer->accumulator, DType::f64);
}

TEST(FileGolden, WithoutASayingHowExactIsNone) {
  EXPECT_NE(complaint_about({}), "");
  EXPECT_NE(complaint_about({{"tolerance", "-1"}}), "");
  EXPECT_NE(complaint_about({{"tolerance", "1e999"}}), "");
  EXPECT_NE(complaint_about({{"tolerance", "1 "}}), "");
  EXPECT_NE(complaint_about({{"producer", "by hand"}}), "");
  EXPECT_NE(complaint_about({{"producer", "float32 accumulation, exp within -1 ulps"}}), "");
  for (const char* key : {"tolerance", "producer"}) EXPECT_TRUE(complaint_about({{key, "?"}}).starts_with("file: "));
}

}  // namespace
}  // namespace attest

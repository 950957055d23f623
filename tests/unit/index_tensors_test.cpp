// Index tensors of a file are checked before anything is addressed with them.
#include "harness/cases/index_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/complaint.h"

namespace attest {
namespace {

template <class Integer>
FileTensor tensor_of(const std::vector<std::int64_t>& shape, const std::vector<Integer>& values) {
  FileTensor tensor{sizeof(Integer) == 4 ? "I32" : "I64", shape, {}};
  tensor.bytes.resize(values.size() * sizeof(Integer));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}
FileTensor integers(const std::vector<std::int32_t>& values) {
  return tensor_of({static_cast<std::int64_t>(values.size())}, values);
}

TEST(IndexTensors, StartsBecomeLengths) {
  EXPECT_EQ(lengths_of_starts(integers({0, 3, 3, 10}), "file", "starts", 10), (std::vector<std::int64_t>{3, 0, 7}));
  EXPECT_EQ(lengths_of_starts(tensor_of<std::int64_t>({2}, {0, 5}), "file", "starts", 5),
            (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(lengths_of_starts(integers({0}), "file", "starts", 0).empty());
}

TEST(IndexTensors, StartsThatAreNoneAreNamedWithTheEntry) {
  const auto of = [](const FileTensor& starts) {
    return complaint([&] { lengths_of_starts(starts, "file", "starts", 10); });
  };
  EXPECT_EQ(of(integers({0, 4, 3, 10})), "file: starts decreases at entry 2: 3 after 4");
  EXPECT_EQ(of(integers({0, 11})), "file: starts overruns at entry 1: 11 of 10 rows");
  EXPECT_EQ(of(integers({1, 10})), "file: starts must begin with 0");
  EXPECT_EQ(of(integers({})), "file: starts must begin with 0");
  EXPECT_NE(of(integers({0, -1})), "");
  EXPECT_NE(of(integers({0, 9})), "");
  EXPECT_NE(of(tensor_of<std::int32_t>({1, 2}, {0, 10})), "");
  FileTensor floats = integers({0, 10});
  floats.dtype = "F32";
  EXPECT_NE(of(floats), "");
}

TEST(IndexTensors, PagesThatAreUsedMustBeThere) {
  const auto of = [](const std::vector<std::int32_t>& entries, const std::vector<std::int64_t>& used) {
    return complaint([&] { check_page_table(tensor_of<std::int32_t>({2, 2}, entries), "file", used, 3); });
  };
  EXPECT_EQ(of({2, 0, 1, -1}, {2, 1}), "");
  EXPECT_EQ(of({2, 99, 1, -1}, {1, 1}), "");  // an entry that nobody looks at
  EXPECT_NE(of({2, 3, 1, 0}, {2, 2}).find("page_table[0,1] = 3"), std::string::npos);
  EXPECT_NE(of({2, 0, 1, -1}, {2, 2}).find("page_table[1,1] = -1"), std::string::npos);
}

}  // namespace
}  // namespace attest

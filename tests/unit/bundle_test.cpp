#include "harness/run/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "harness/run/stored_order.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Each element of each input, in storage and in the file.
void expect_same_numbers(const std::string& line) {
  const Case source = case_from_line(line);
  const CaseInputs inputs = make_inputs(source.problem);
  const Inputs views = inputs.views();
  const TensorFile file = bundle_file(source, {}, 1);
  for (const TensorId id : inputs.list()) {
    const FileTensor& tensor = file.tensors.at(std::string(row_of(id).name));
    const StoredOrder order(source.problem, id);
    std::vector<char> met(static_cast<std::size_t>(order.size()));
    order.each([&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const ConstTensor& view = views.at(id);
      const std::size_t n = order.at(b, h, l, d);
      ASSERT_FALSE(met.at(n)) << line;
      met[n] = 1;
      const double there = view.dtype == DType::boolean
                               ? static_cast<const unsigned char*>(view.data)[view.offset(b, h, l, d)]
                               : load(view.data, view.dtype, view.offset(b, h, l, d));
      ASSERT_NE(find_file_type(tensor.dtype), nullptr) << row_of(id).name;
      const double here = tensor.at(static_cast<std::int64_t>(n));
      ASSERT_TRUE(here == there || (std::isnan(here) && std::isnan(there))) << line << ": " << row_of(id).name;
    });
    EXPECT_EQ(std::count(met.begin(), met.end(), 1), order.size()) << line << ": " << row_of(id).name;
  }
}

TEST(Bundle, HoldsEveryElementOfItsInputsOnce) {
  expect_same_numbers("batch=2 heads=4/2 seq=3x7 dim=4/6 mask=add:B1QK:normal poison=hidden:kv layout=blhd");
  expect_same_numbers("batch=3 heads=2 seq=6 dim=4 lengths=6,0,3 layout=thd gap=2 causal");
  expect_same_numbers("batch=2 seq=3x11 dim=4 lengths=11,4 paged=4 dtype=bf16");
  expect_same_numbers("heads=2 seq=4x8 dim=4 mask=bool:1HQK:random(0.5) sinks alibi align=top-left dtype=f64");
  expect_same_numbers("heads=2 seq=3x5 dim=6 k.dtype=i4 v.dtype=e2m1 k.scale=head v.scale=token");
  expect_same_numbers("pass=both heads=2 seq=4x8 dim=4 dtype=f16");
}

fs::path empty_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("bundle_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

BundleCase one() { return describe(case_from_line("batch=2 seq=3x5 dim=4"), 1, ""); }

TEST(Bundle, ListIsReadAsItWasWritten) {
  const fs::path folder = empty_folder("list_read");
  const Bundle bundle{"0.1.0", "abc", "example", {one(), describe(case_from_line("seq=1 dim=1"), 2, "smoke")}};
  std::ofstream(folder / kBundleList) << bundle.text();
  const Bundle read = read_bundle(folder);
  EXPECT_EQ(read.text(), bundle.text());
  EXPECT_EQ(read.cases.back().suite, "smoke");
  EXPECT_EQ(read.bytes(), bundle.bytes());
}

TEST(Bundle, ListThatIsNoneIsOneLineOfComplaint) {
  const fs::path folder = empty_folder("list_complaint");
  EXPECT_NE(complaint([&] { read_bundle(folder); }).find("no bundle, since it has no bundle.jsonl"), std::string::npos);
  const std::string text = Bundle{"0.1.0", "abc", "example", {one()}}.text();
  const auto with = [&](const std::string& other) {
    std::ofstream(folder / kBundleList, std::ios::trunc) << other;
    return complaint([&] { read_bundle(folder); });
  };
  EXPECT_EQ(with(text), "");
  EXPECT_NE(with(text.substr(0, text.find('\n') + 1)).find("0 of 1 cases"), std::string::npos);
  EXPECT_NE(with("{}\n").find("\"kind\""), std::string::npos);
  EXPECT_NE(with("nothing\n").find("no JSON object"), std::string::npos);
  std::string newer = text;
  newer.replace(newer.find("\"schema\":1"), 10, "\"schema\":9");
  EXPECT_NE(with(newer), "");
  std::string untyped = text;
  untyped.replace(untyped.find("\"F32\""), 5, "\"X32\"");
  EXPECT_NE(with(untyped).find("no type of a tensor"), std::string::npos);
  std::string deeper = text;
  deeper.insert(deeper.find("\"shape\":[") + 9, "1,");
  EXPECT_NE(with(deeper).find("more axes than a result can have"), std::string::npos) << with(deeper);
  std::string elsewhere = text;
  elsewhere.replace(elsewhere.find("00001."), 6, "../0001.");
  EXPECT_NE(with(elsewhere).find("no name of a file"), std::string::npos);
}

}  // namespace
}  // namespace attest

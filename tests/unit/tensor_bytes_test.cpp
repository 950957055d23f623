// Storage that spans more than a machine has: only what lies near elements is touched, and holds what it should.
#include "harness/cases/tensor_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 33;

/// Rows of 2 numbers, `apart` elements from one to the next.
TensorPlace rows(std::int64_t count, std::int64_t apart) {
  TensorPlace place = dense_place({1, 1, count, 2});
  place.strides[2] = apart;
  place.elements = (count - 1) * apart + 2;
  return place;
}

/// Of this process, in memory.
double resident_bytes() {
  double pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

TEST(TensorBytes, CompactStorageIsUsedAsAWhole) {
  EXPECT_EQ(used_ranges(rows(3, 100), DType::f32, 808), (std::vector<ByteRange>{{0, 808}}));
  EXPECT_EQ(used_ranges(dense_place({1, 0, 1, 1}), DType::f32, 0), (std::vector<ByteRange>{{0, 0}}));
}

TEST(TensorBytes, ManyRowsAreNotCounted) {
  const Problem p = parse_case("seq=999999999 dim=64");  // who asks whether there is memory for it, is told at once
  EXPECT_EQ(used_ranges(place_of(p, TensorId::q), DType::f32, std::size_t{256} * 999999999).size(), 1u);
}

TEST(TensorBytes, WhereAGoodPartIsUsedAllOfItIs) {
  const TensorPlace near = rows(100'000, 4096), apart = rows(2000, 1 << 20);
  const auto size = [](const TensorPlace& place) { return static_cast<std::size_t>(*place.elements) * 4; };
  EXPECT_EQ(used_ranges(near, DType::f32, size(near)), (std::vector<ByteRange>{{0, size(near)}}));
  EXPECT_EQ(used_ranges(apart, DType::f32, size(apart)).size(), 2000u);
}

TEST(TensorBytes, WhatOverlapsCountsOnce) {
  // 4,096 columns of 4,096 bytes each, in which the rows of 24 sequences lie side by side: 16 MiB, behind 8 GiB.
  const Problem p = parse_case("batch=24 seq=1x4096 dim=1 k.strides=4096,4096,1,4096 k.offset=2147483649");
  const TensorPlace keys = place_of(p, TensorId::k);
  const std::vector<ByteRange> used = used_ranges(keys, DType::f32, static_cast<std::size_t>(*keys.elements) * 4);
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].first, 4 * std::size_t{2147483649} - 8192);
  EXPECT_LT(used[0].size(), std::size_t{1} << 20);
  // The same element by element.
  const auto held = [&](std::int64_t element) {
    return std::any_of(used.begin(), used.end(), [&](const ByteRange& range) {
      return range.first <= static_cast<std::size_t>(element) * 4 &&
             range.end >= static_cast<std::size_t>(element) * 4 + 4;
    });
  };
  for (std::int64_t b = 0; b < 24; ++b) EXPECT_TRUE(held(keys.element(b, 0, 4095, 0))) << b;
}

TEST(TensorBytes, RunsOfPackedSequencesAreTheirOwn) {
  const Problem p = parse_case("batch=3 heads=2 seq=9 dim=2 lengths=q:4,0,5/k:4,0,5 layout=thd");
  TensorPlace place = place_of(p, TensorId::q);
  place.strides[1] = kFar;
  place.elements = place.element(2, 1, 4, 1) + 1;
  const std::vector<ByteRange> used = used_ranges(place, DType::f32, static_cast<std::size_t>(*place.elements) * 4);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].first, 0u);
  EXPECT_EQ(used[1].end, static_cast<std::size_t>(*place.elements) * 4);
}

TEST(TensorBytes, FarRowsAreRangesOfTheirOwn) {
  const std::size_t size = 4 * (kFar + 2), around = 8192;
  EXPECT_EQ(used_ranges(rows(2, kFar), DType::f32, size),
            (std::vector<ByteRange>{{0, 8 + around}, {4 * kFar - around, size}}));
  // Columns apart, and neighbours that grow together.
  TensorPlace columns = dense_place({1, 1, 2, 2});
  columns.strides = {0, 0, 1, kFar};
  EXPECT_EQ(used_ranges(columns, DType::f32, size),
            (std::vector<ByteRange>{{0, 8 + around}, {4 * kFar - around, size}}));
}

TEST(TensorBytes, WhatIsNotUsedTakesNoMemory) {
  const std::size_t size = 4 * (kFar + 2);
  const double before = resident_bytes();
  TensorBytes far(size, used_ranges(rows(2, kFar), DType::f32, size));
  for (const ByteRange& range : far.used()) std::memset(far.part(range).data(), 7, range.size());
  const TensorBytes copy = far;
  EXPECT_TRUE(copy == far);
  EXPECT_EQ(copy.data()[size - 1], std::byte{7});
  EXPECT_EQ(copy.data()[size / 2], std::byte{0});
  far.data()[size - 1] = std::byte{8};
  EXPECT_FALSE(copy == far);
  EXPECT_LT(resident_bytes() - before, 8e6);
}

TEST(TensorBytes, ACaseWithFarStridesIsMadeAndGuarded) {
  const Problem p =
      parse_case("heads=2 seq=3 dim=4 q.strides=0,4294967296,2147483648,1 out.strides=1,12884901888,4294967296,1");
  const double before = resident_bytes();
  const CaseInputs inputs = make_inputs(p);
  EXPECT_NE(load(inputs.at(TensorId::q).view().data, DType::f32, inputs.at(TensorId::q).view().offset(0, 1, 2, 3)), 0);
  GuardedOutputs outputs(p);
  EXPECT_EQ(outputs.inspect().reason, "left 24 element(s) of o unwritten");
  const MutableTensor o = outputs.views().out();
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t l = 0; l < 3; ++l) {
      for (std::int64_t d = 0; d < 4; ++d) store(o.data, o.dtype, o.offset(0, h, l, d), 1);
    }
  }
  EXPECT_EQ(outputs.inspect().reason, "");
  GuardedOutputs same = outputs;
  EXPECT_EQ(same.difference_from(outputs), "");
  store(same.views().out().data, DType::f32, o.offset(0, 1, 2, 3), 2);
  EXPECT_NE(same.difference_from(outputs).find("is 2, was 1"), std::string::npos) << same.difference_from(outputs);
  store(o.data, o.dtype, o.offset(0, 1, 2, 3) + 1, 1);  // one element too far
  EXPECT_EQ(outputs.inspect().cause.kind, Cause::wrote_outside);
  EXPECT_LT(resident_bytes() - before, 16e6);
}

}  // namespace
}  // namespace attest

// One tensor's bytes: what is written can be read, what is not is NaN.
#include "harness/cases/tensor_storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(TensorStorage, HoldsElementsWhereTheirStridesSay) {
  const Problem p = parse_case("batch=2 heads=2 seq=3 dim=2 q.strides=100,40,10,3 q.offset=7");
  TensorStorage storage(place_of(p, TensorId::q), DType::f32);
  storage.set(1, 0, 2, 1, 0.5);
  const ConstTensor view = storage.view();
  EXPECT_EQ(view.offset(1, 0, 2, 1), 123);
  EXPECT_EQ(load(view.data, view.dtype, 123), 0.5);
  EXPECT_TRUE(std::isnan(load(view.data, view.dtype, 122)));
  EXPECT_TRUE(std::isnan(load(view.data, view.dtype, -7)));  // before the first element
  EXPECT_EQ(storage.bytes(), 4u * (7 + 100 + 40 + 20 + 3 + 1));
}

TEST(TensorStorage, RoundsToItsTypeAndRemembersWhatItCouldNotHold) {
  TensorStorage storage(dense_place({1, 1, 1, 4}), DType::f16);
  storage.set(0, 0, 0, 0, 1 + 0x1p-11);  // a tie to even
  storage.set(0, 0, 0, 1, 65519);
  storage.set(0, 0, 0, 2, kInfinity);
  EXPECT_EQ(load(storage.view().data, DType::f16, 0), 1);
  EXPECT_EQ(load(storage.view().data, DType::f16, 1), 65504);
  EXPECT_EQ(load(storage.view().data, DType::f16, 2), kInfinity);
  EXPECT_EQ(storage.overflowed(), 0);  // an infinity that was asked for is none that came about
  storage.set(0, 0, 0, 3, -1e6);
  EXPECT_EQ(storage.overflowed(), -1e6);
}

TEST(TensorStorage, OfEightBitsSaturates) {
  const auto stored = [](DType dtype, double value) {
    TensorStorage storage(dense_place({1, 1, 1, 1}), dtype);
    storage.set(0, 0, 0, 0, value);
    return load(storage.view().data, dtype, 0);
  };
  EXPECT_EQ(stored(DType::e4m3, -1000), -448);
  EXPECT_EQ(stored(DType::i8, 1000), 127);
  EXPECT_EQ(stored(DType::i8, -128), -128) << "each of its codes";
  EXPECT_EQ(stored(DType::i8, -1000), -128);
  EXPECT_EQ(stored(DType::e5m2, 1e30), 57344);
  // What is no finite number is converted as a cast converts it.
  EXPECT_EQ(stored(DType::e5m2, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(stored(DType::e4m3, kInfinity)) && std::isnan(stored(DType::e4m3, kNaN)));
}

TEST(TensorStorage, ViewsOutliveAMove) {
  TensorStorage first(dense_place({1, 1, 2, 2}), DType::f64);
  const ConstTensor view = first.view();
  const TensorStorage second = std::move(first);
  EXPECT_EQ(second.view().data, view.data);
}

TEST(TensorStorage, OfABooleanMaskIsVisibleUntilSaidOtherwise) {
  TensorStorage mask(dense_place({1, 1, 2, 3}), DType::boolean);
  mask.set(0, 0, 1, 2, 0);
  const auto* bytes = static_cast<const std::uint8_t*>(mask.view().data);
  EXPECT_EQ(std::vector<int>(bytes, bytes + 6), (std::vector<int>{1, 1, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace attest

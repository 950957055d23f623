// Where elements lie: every layout, without two elements in one place.
#include "reference/call/tensor_place.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(TensorPlace, LayoutsOrderTheAxes) {
  const auto strides = [](const std::string& layout) {
    return place_of(parse_case("batch=2 heads=3 seq=5 dim=4 layout=" + layout), TensorId::k).strides;
  };
  EXPECT_EQ(strides("bhld"), (Index4{60, 20, 4, 1}));
  EXPECT_EQ(strides("blhd"), (Index4{60, 4, 12, 1}));
  EXPECT_EQ(strides("bld"), (Index4{60, 4, 12, 1}));
  EXPECT_EQ(strides("qkv"), (Index4{180, 4, 36, 1}));
  EXPECT_EQ(strides("kv"), (Index4{120, 4, 24, 1}));
}

TEST(TensorPlace, NoTwoElementsShareOne) {
  for (const char* line :
       {"batch=2 heads=3 seq=5 dim=4", "batch=2 heads=3 seq=5 dim=4 layout=blhd",
        "batch=2 heads=3 seq=5 dim=4 layout=qkv", "batch=2 heads=3 seq=5 dim=4 lengths=q:5,2/k:5,3 layout=thd",
        "batch=2 heads=3 seq=5 dim=4 out.offset=9", "batch=2 heads=3 seq=5x9 dim=4 past=4 causal"}) {
    const Problem p = parse_case(line);
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::out}) {
      const TensorPlace place = place_of(p, id);
      std::set<std::int64_t> met;
      std::int64_t last = -1;
      for (std::int64_t b = 0; b < place.shape[0]; ++b) {
        for (std::int64_t h = 0; h < place.shape[1]; ++h) {
          for (std::int64_t l = 0; l < place.rows(b); ++l) {
            for (std::int64_t d = 0; d < place.shape[3]; ++d) {
              const std::int64_t at = place.element(b, h, l, d);
              EXPECT_TRUE(met.insert(at).second) << line;
              EXPECT_GE(at, place.offset);
              last = std::max(last, at);
            }
          }
        }
      }
      EXPECT_EQ(place.elements, last + 1) << line << " " << name_of(id);
    }
  }
}

TEST(TensorPlace, AMaskHasStrideZeroWhereItIsBroadcast) {
  const TensorPlace place = place_of(parse_case("batch=2 heads=3 seq=5x7 dim=4 mask=bool:B1Q1:all"), TensorId::mask);
  EXPECT_EQ(place.shape, (Index4{2, 1, 5, 1}));
  EXPECT_EQ(place.strides[1], 0);
  EXPECT_EQ(place.strides[3], 0);
  EXPECT_EQ(place.elements, 10);
}

TEST(TensorPlace, OnlyWhatTheCallStores) {
  const Problem plain = parse_case("seq=4 dim=2");
  EXPECT_FALSE(has_tensor(plain, TensorId::mask));
  EXPECT_FALSE(has_tensor(plain, TensorId::past_k));
  const Problem cached = parse_case("seq=2x6 dim=2 past=4 causal");
  ASSERT_TRUE(has_tensor(cached, TensorId::past_k));
  EXPECT_EQ(place_of(cached, TensorId::past_k).shape[2], 4);
  EXPECT_EQ(place_of(cached, TensorId::k).shape[2], 2);
  const Problem paged = parse_case("batch=2 seq=1x9 dim=2 lengths=9,5 paged=4");
  EXPECT_EQ(place_of(paged, TensorId::k).shape, (Index4{5, 1, 4, 2}));  // pages, heads, rows of a page, features
}

TEST(TensorPlace, TooManyElementsAreNone) {
  Problem p = parse_case("seq=4 dim=2");
  p.call.query_length = std::int64_t{1} << 62;
  EXPECT_FALSE(place_of(p, TensorId::q).elements);
}

}  // namespace
}  // namespace attest

// Results are the same by their bits, whatever lies beside them.
#include "harness/speed/trust/result_bits.h"

#include "tests/unit/helpers.h"

namespace attest {
namespace {

void set(const MutableTensor& t, std::int64_t h, std::int64_t l, std::int64_t d, float number) {
  static_cast<float*>(t.data)[t.offset(0, h, l, d)] = number;
}

TEST(ResultBits, TellOneElementAndLittleElse) {
  const Call call = parse_case("heads=2 seq=3 dim=5 out=o,lse out.strides=60,30,10,1").call;
  GuardedOutputs a(call), b(call);
  const auto fill = [](GuardedOutputs& outputs, float number) {
    const Outputs views = outputs.views();
    const MutableTensor &o = views.out(), &lse = *views.lse();
    for (std::int64_t n = 0; n < 6; ++n) {
      for (std::int64_t d = 0; d < 5; ++d) set(o, n / 3, n % 3, d, number);
      set(lse, n / 3, n % 3, 0, 1);
    }
  };
  fill(a, 0.5);
  fill(b, 0.5);
  EXPECT_TRUE(same_bits(a, b)) << "what lies between rows is no result";
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  set(b.views().out(), 1, 2, 4, 0.25);
  EXPECT_FALSE(same_bits(a, b));
  EXPECT_NE(fingerprint(a), fingerprint(b));
  fill(b, 0.5);
  set(*b.views().lse(), 0, 0, 0, 2);
  EXPECT_FALSE(same_bits(a, b));
  EXPECT_NE(fingerprint(a), fingerprint(b));
  fill(a, 0.0);
  fill(b, -0.0F);
  EXPECT_FALSE(same_bits(a, b)) << "zeros have signs";
}

}  // namespace
}  // namespace attest

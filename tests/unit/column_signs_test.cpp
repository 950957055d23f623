// Where columns of a case of gradients are negated, the results of the reference are those that the signs foretell.
#include "harness/speed/trust/column_signs.h"

#include <gtest/gtest.h>

#include "harness/cases/other_data.h"
#include "harness/comparison/compare.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

const char* const kLines[] = {
    "pass=backward heads=4/2 seq=9x13 dim=8/5 causal align=bottom-right",
    "pass=backward batch=2 heads=2 seq=7 dim=4 mask=add:11QK:normal sinks dlse softcap=2 out=dq,dk,dv,dmask,dsinks",
    "pass=both heads=2 seq=6 dim=4 alibi dropout=0.3 out=o,lse,raw,weights,dq,dk,dv",
    "pass=backward batch=2 heads=2/1 seq=9x11 dim=6 lengths=q:9,4/k:11,7 layout=thd gap=2",
    "pass=backward heads=2 seq=4x10 dim=6 past=6",
    "pass=both heads=2 seq=4x10 dim=6 past=6 out=o,present,dq,dk,dv",
    "pass=backward batch=2 heads=2 seq=4x10 dim=6 lengths=10,7 paged=4",
    "pass=backward dtype=f64 heads=2 seq=8 dim=4 layout=qkv do.dtype=f32",
    "pass=backward heads=2 seq=8 dim=4 layout=blhd k.dtype=f16",
    "pass=backward heads=4/2 seq=8 dim=4 v.strides=0,0,1,1 k.strides=0,0,4,1 do.strides=0,0,0,1",
    "pass=backward heads=2 seq=5 dim=3 q.strides=15,3,3,0",
    "pass=backward heads=2 seq=9 dim=4 poison=hidden:do lengths=q:5/k:9",
    "pass=backward seq=0x5 dim=8",
    "op=gated_delta pass=both heads=4/2 seq=9 dim=5/3 state dpresent out=o,present,dq,dk,dv,ddecay,dbeta,dstate",
    "op=gated pass=backward batch=2 heads=2 seq=6 dim=4 decay=head state out=dk,ddecay,dstate state.strides=0,4,0,1",
    "op=delta pass=backward heads=2 seq=6 dim=4 beta=one dpresent q.strides=0,0,0,1",
};

/// Of all rows that are stored.
std::vector<double> numbers_of(const CaseInputs& inputs, TensorId id) {
  std::vector<double> numbers;
  if (!inputs.has(id)) return numbers;
  const TensorStorage& t = inputs.at(id);
  each_index(t.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    if (l < t.place().rows(b)) numbers.push_back(load(t.memory().data(), t.dtype(), t.place().element(b, h, l, d)));
  });
  return numbers;
}

TEST(ColumnSigns, ForetellEveryResult) {
  for (const char* line : kLines) {
    const Case one = case_from_line(line);
    const Call& call = one.problem.call;
    const CaseInputs as_made = make_inputs(one.problem);
    const Expectation before = expect(one.problem, as_made.views(), {}, 1);
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const ColumnSigns signs(call, seed);
      CaseInputs inputs = as_made;
      change_signs(inputs, {}, signs);
      EXPECT_EQ(same_data(inputs, as_made), inputs.at(TensorId::k).bytes() == 0) << line;
      const Expectation now = expect(one.problem, inputs.views(), {}, 1);
      for (const TensorId id : results_of(call)) {
        const auto columns = static_cast<std::size_t>(seen_shape(call, id)[3]);
        ASSERT_EQ(now.of(id).size(), before.of(id).size()) << line;
        for (std::size_t n = 0; n < now.of(id).size(); ++n) {
          const double value = before.of(id)[n];
          const bool negated = signs.negates(id, static_cast<std::int64_t>(n % columns));
          ASSERT_EQ(now.of(id)[n], negated ? -value : value) << line << ": " << name_of(id) << " " << n;
        }
      }
      CaseInputs again = inputs;
      if (inputs.has(TensorId::saved_o)) save_forward(one.problem, again);
      for (const TensorId id : {TensorId::saved_o, TensorId::saved_lse})
        EXPECT_EQ(numbers_of(again, id), numbers_of(inputs, id)) << line << ": what was saved is right";
      change_signs(inputs, signs, {});
      EXPECT_TRUE(same_data(inputs, as_made)) << line;
    }
  }
}

TEST(ColumnSigns, AreDrawnForEachColumn) {
  const Call call = case_from_line("pass=backward seq=4 dim=64").problem.call;
  const ColumnSigns a(call, 1), b(call, 2);
  for (const TensorId id : {TensorId::q, TensorId::v, TensorId::dout, TensorId::dq}) {
    int negated = 0, other = 0;
    for (std::int64_t d = 0; d < 64; ++d) {
      negated += a.negates(id, d);
      other += a.negates(id, d) != b.negates(id, d);
    }
    EXPECT_NEAR(negated, 32, 16) << name_of(id);
    EXPECT_NEAR(other, 32, 16) << name_of(id);
  }
  EXPECT_FALSE(a.negates(TensorId::lse, 0));
  EXPECT_FALSE(ColumnSigns().negates(TensorId::q, 0));
}

}  // namespace
}  // namespace attest

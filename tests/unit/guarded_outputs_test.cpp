// Writes beside an output show, and unwritten elements.
#include "harness/comparison/guarded_outputs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(GuardedOutputs, NoticesWritesOutsideAndElementsLeftOut) {
  const Problem p = parse_case("seq=4 dim=4 out.strides=32,32,8,2");
  GuardedOutputs outputs(p);
  EXPECT_EQ(outputs.inspect().cause.kind, Cause::unwritten);
  const View<float> view = outputs.views().out().as<float>();
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 4; ++c) view(0, 0, i, c) = 1;
  }
  EXPECT_EQ(outputs.inspect().reason, "");
  view.data[1] = 1;  // between two elements
  EXPECT_EQ(outputs.inspect().cause.kind, Cause::wrote_outside);
}

TEST(GuardedOutputs, TellsAWriteOutsideFromAnElementLeftOut) {
  // As many places written as there are elements, one of them beside the output.
  const Problem p = parse_case("dtype=bf16 heads=2 seq=3 dim=2 out.strides=40,20,5,2");
  GuardedOutputs outputs(p);
  const View<std::uint16_t> view = outputs.views().out().as<std::uint16_t>();
  each_index(view.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) { view(b, h, l, d) = 1; });
  EXPECT_EQ(outputs.inspect().reason, "");
  outputs.reset();
  each_index(view.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    if (h + l + d > 0) view(b, h, l, d) = 1;
  });
  EXPECT_EQ(outputs.inspect().reason, "left 1 element(s) of o unwritten");
  view.data[1] = 1;
  EXPECT_EQ(outputs.inspect().reason, "wrote outside o: at element 1 of its storage");
}

TEST(GuardedOutputs, ReadsRowsAsElements) {
  for (const DType type : kWideTypes) {
    const Problem p =
        parse_case("dtype=" + std::string(name_of(type)) + " heads=2 seq=3x4 dim=2 out.strides=40,20,5,2 " +
                   "out=o,lse,raw,capped,biased,weights");
    GuardedOutputs outputs(p);
    const Outputs views = outputs.views();
    double value = 0;
    const auto number = [&](const MutableTensor& t) {
      each_index(t.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        store(t.data, t.dtype, t.offset(b, h, l, d), ++value);
      });
    };
    for (const MutableTensor& t : {views.out(), *views.raw(), *views.capped(), *views.biased(), *views.weights()})
      number(t);
    std::vector<double> row(2);
    outputs.read_row(TensorId::out, 0, 1, 2, row);
    EXPECT_EQ(row, (std::vector<double>{outputs.out(0, 1, 2, 0), outputs.out(0, 1, 2, 1)})) << name_of(type);
    for (const TensorId stage : {TensorId::raw, TensorId::capped, TensorId::biased, TensorId::weights}) {
      row.resize(4);
      outputs.read_row(stage, 0, 1, 0, row);
      for (std::int64_t j = 0; j < 4; ++j) EXPECT_EQ(row[static_cast<std::size_t>(j)], outputs.at(stage, 0, 1, 0, j));
    }
  }
}

}  // namespace
}  // namespace attest

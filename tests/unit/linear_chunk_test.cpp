// The bound of linear attention in chunks, held against a chunk whose every rounding goes the same way.
#include "reference/linear/linear_chunk.h"

#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/linear/linear_attention.h"
#include "reference/operators/operator.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

constexpr double kU = 0x1p-24;

/// A float that every operation makes larger by as much as rounding may.
struct Grown {
  double value = 0;
};
Grown operator+(Grown a, Grown b) { return {(a.value + b.value) * (1 + kU)}; }
Grown operator*(Grown a, Grown b) { return {a.value * b.value * (1 + kU)}; }
Grown grown_exp(Grown x, double ulps) { return {std::exp(x.value) * (1 + 2 * kU * ulps)}; }

/// Positive tokens and what a chunk makes of them, as reference/linear/linear_chunk.h writes it.
struct Chunk {
  std::size_t tokens, keys, columns;
  bool gated;
  double ulps = 2;

  double key(std::size_t t, std::size_t d) const { return 0.5 + 0.01 * static_cast<double>((7 * t + 3 * d) % 50); }
  double value(std::size_t t, std::size_t m) const { return 0.5 + 0.01 * static_cast<double>((5 * t + 11 * m) % 50); }
  double query(std::size_t d) const { return 0.5 + 0.01 * static_cast<double>(d % 50); }
  double state(std::size_t d, std::size_t m) const { return 0.1 * static_cast<double>((d + m) % 7); }
  double log(std::size_t d) const {
    return gated ? 0.01 * static_cast<double>(1 + d % 3) : 0;
  }  // grows, as roundings do

  /// exp(sign * G) of token t.
  Grown factor(std::size_t t, std::size_t d, double sign) const {
    Grown sum{log(d)};
    for (std::size_t n = 0; n < t; ++n) sum = sum + Grown{log(d)};
    // The sum of logarithms is off to the side that makes the power larger.
    const double exact = static_cast<double>(t + 1) * log(d);
    return grown_exp({sign * exact + (sum.value - exact)}, ulps);
  }
  Grown scaled_key(std::size_t t, std::size_t d) const {
    return gated ? Grown{key(t, d)} * factor(t, d, -1) : Grown{key(t, d)};
  }
  Grown scaled_query(std::size_t d) const {
    return gated ? Grown{query(d)} * factor(tokens - 1, d, 1) : Grown{query(d)};
  }

  /// Column m for the query at the last token.
  double read(std::size_t m, double scale) const {
    Grown out = scaled_query(0) * Grown{state(0, m)};
    for (std::size_t d = 1; d < keys; ++d) out = out + scaled_query(d) * Grown{state(d, m)};
    for (std::size_t t = 0; t < tokens; ++t) {
      Grown score = scaled_query(0) * scaled_key(t, 0);
      for (std::size_t d = 1; d < keys; ++d) score = score + scaled_query(d) * scaled_key(t, d);
      out = out + score * Grown{value(t, m)};
    }
    return (out * (Grown{scale} * Grown{1})).value;
  }
  double state_after(std::size_t d, std::size_t m) const {
    Grown sum{state(d, m)};
    for (std::size_t t = 0; t < tokens; ++t) sum = sum + scaled_key(t, d) * Grown{value(t, m)};
    return gated ? (sum * factor(tokens - 1, d, 1)).value : sum.value;
  }

  double exact_state(std::size_t d, std::size_t m) const {
    double sum = state(d, m);
    for (std::size_t t = 0; t < tokens; ++t) sum = std::exp(log(d)) * sum + key(t, d) * value(t, m);
    return sum;
  }
  double exact_read(std::size_t m, double scale) const {
    double sum = 0;
    for (std::size_t d = 0; d < keys; ++d) sum += query(d) * exact_state(d, m);
    return scale * sum;
  }

  LinearChunk bounded() const {
    LinearChunk chunk(keys, columns);
    std::vector<double> before;
    for (std::size_t d = 0; d < keys; ++d)
      for (std::size_t m = 0; m < columns; ++m) before.push_back(state(d, m));
    chunk.begin(before, std::vector<double>(before.size()));
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<double> k, v, g;
      for (std::size_t d = 0; d < keys; ++d) {
        k.push_back(key(t, d));
        if (gated) g.push_back(log(d));
      }
      for (std::size_t m = 0; m < columns; ++m) v.push_back(value(t, m));
      chunk.add(k, v, g);
    }
    return chunk;
  }
  Arithmetic arithmetic() const {
    Arithmetic a;
    a.exp_ulps = ulps;
    a.state_chunk = static_cast<std::int64_t>(tokens);
    return a;
  }
  std::vector<double> queries() const {
    std::vector<double> list;
    for (std::size_t d = 0; d < keys; ++d) list.push_back(query(d));
    return list;
  }
};

class LinearChunkBound : public testing::TestWithParam<Chunk> {};

TEST_P(LinearChunkBound, HoldsAndIsHardlyWiderThanTheWorst) {
  const Chunk c = GetParam();
  const LinearChunk chunk = c.bounded();
  EXPECT_TRUE(chunk.together());
  const std::vector<double> of_state = chunk.state_bound(c.arithmetic());
  const std::vector<double> of_read = chunk.read_bound(c.arithmetic(), c.queries(), 1.5);
  double worst_state = 0, worst_read = 0;
  for (std::size_t m = 0; m < c.columns; ++m) {
    worst_read = std::max(worst_read, std::fabs(c.read(m, 1.5) - c.exact_read(m, 1.5)) / of_read[m]);
    for (std::size_t d = 0; d < c.keys; ++d) {
      const double error = std::fabs(c.state_after(d, m) - c.exact_state(d, m));
      worst_state = std::max(worst_state, error / of_state[d * c.columns + m]);
    }
  }
  EXPECT_LE(worst_state, 1);
  EXPECT_LE(worst_read, 1);
  // A sum in order takes its terms through half of its additions on average.
  EXPECT_GE(worst_state, 0.4);
  EXPECT_GE(worst_read, 0.5);
}
INSTANTIATE_TEST_SUITE_P(Sizes, LinearChunkBound,
                         testing::Values(Chunk{1, 1, 1, false}, Chunk{2, 3, 2, true}, Chunk{8, 16, 3, false},
                                         Chunk{32, 64, 5, false}, Chunk{32, 64, 5, true}, Chunk{64, 8, 5, true, 20}),
                         [](const auto& one) {
                           const Chunk& c = one.param;
                           return std::to_string(c.tokens) + "x" + std::to_string(c.keys) + (c.gated ? "_gated" : "");
                         });

TEST(LinearChunk, CarriesTheErrorOfTheStateBefore) {
  LinearChunk chunk(1, 1);
  Arithmetic a;
  a.state_chunk = 4;
  chunk.begin({1.0}, {0.25});
  chunk.add({1.0}, {0.0}, {std::log(0.5)});
  EXPECT_NEAR(chunk.state_bound(a)[0], 0.125, 1e-5);
  EXPECT_NEAR(chunk.read_bound(a, {3.0}, 2)[0], 0.75, 1e-4);
}

TEST(LinearChunk, StrongDecaysGoTokenByToken) {
  LinearChunk chunk(2, 1);
  chunk.begin({0.0, 0.0}, {0.0, 0.0});
  chunk.add({1.0, 1.0}, {1.0}, {0.0, -kChunkNats});
  EXPECT_TRUE(chunk.together());
  chunk.add({1.0, 1.0}, {1.0}, {0.0, 0.5});
  EXPECT_FALSE(chunk.together());
}

TEST(LinearChunk, OverflowProvesNothing) {
  LinearChunk chunk(1, 1);
  Arithmetic a;
  a.state_chunk = 4;
  chunk.begin({0.0}, {0.0});
  chunk.add({1e30}, {1e30}, {});
  EXPECT_EQ(chunk.state_bound(a)[0], kInfinity);
  EXPECT_EQ(chunk.read_bound(a, {1.0}, 1)[0], kInfinity);
}

/// The bound of a row of the whole operator, and of the state at the end.
std::pair<double, double> bounds_of(const std::string& line, std::int64_t chunk) {
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  Arithmetic a;
  a.state_chunk = chunk;
  LinearState state(p, views, 0, 0, {a});
  while (state.tokens() < p.call.query_length) state.step();
  std::vector<double> bound;
  state.bound_read(0, 0, p.call.query_length - 1, bound);
  return {bound[0], state.bounds(0)[0]};
}

TEST(LinearChunk, IsNoNarrowerThanTokenByToken) {
  for (const std::string line : {"op=linear seq=70 dim=16", "op=gated seq=70 dim=16"}) {
    const auto [row, state] = bounds_of(line, 0);
    const auto [row_in_chunks, state_in_chunks] = bounds_of(line, 32);
    EXPECT_GE(row_in_chunks, row) << line;
    EXPECT_GE(state_in_chunks, state) << line;
    EXPECT_LT(row_in_chunks, 1e-3) << line;
    EXPECT_LT(state_in_chunks, 1e-3) << line;
  }
}

TEST(LinearChunk, UnderTheDeltaRuleProvesNothing) {
  EXPECT_LT(bounds_of("op=delta seq=8 dim=4", 0).first, 1);
  EXPECT_EQ(bounds_of("op=delta seq=8 dim=4", 4).first, kInfinity);
  EXPECT_EQ(bounds_of("op=gated_delta seq=8 dim=4", 4).second, kInfinity);
}

}  // namespace
}  // namespace attest

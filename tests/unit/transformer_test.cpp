// What stands around attention, against values worked out by hand, and with every backend as the core.
#include "reference/transformer.h"

#include <cmath>

#include "harness/cases/fill.h"
#include "harness/trace/language_model.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Matrix random_matrix(std::uint64_t stream, std::int64_t rows, std::int64_t columns) {
  Matrix m{rows, columns, {}};
  for (std::int64_t n = 0; n < rows * columns; ++n) {
    m.values.push_back(hash_uniform(hash_words(3, stream, static_cast<std::uint64_t>(n))) - 0.5);
  }
  return m;
}

Matrix identity(std::int64_t n) {
  Matrix m{n, n, std::vector<double>(static_cast<std::size_t>(n * n))};
  for (std::int64_t i = 0; i < n; ++i) m.values[static_cast<std::size_t>(i * n + i)] = 1;
  return m;
}

MultiHeadWeights weights(std::int64_t model, std::int64_t query_columns, std::int64_t key_columns) {
  return {random_matrix(1, model, query_columns), random_matrix(2, model, key_columns),
          random_matrix(3, model, key_columns), random_matrix(4, query_columns, model)};
}

TEST(MultiHead, OneHeadWithIdentitiesIsPlainAttention) {
  const Matrix x{2, 2, {1, 0, 0, 1}};
  const Matrix y =
      multi_head_attention(x, x, {identity(2), identity(2), identity(2), identity(2)}, {1, 1, false}, reference_core);
  const double high = std::exp(1 / std::sqrt(2.0)), p = high / (high + 1);
  EXPECT_NEAR(y.at(0, 0), p, 1e-15);
  EXPECT_NEAR(y.at(0, 1), 1 - p, 1e-15);
  EXPECT_NEAR(y.at(1, 1), p, 1e-15);
}

TEST(MultiHead, HeadsDoNotMix) {
  // Two heads of width 2 give what two calls with one head each give, side by side.
  const Matrix x = random_matrix(9, 5, 4);
  const MultiHeadWeights w = weights(4, 4, 4);
  const auto half = [](const Matrix& m, std::int64_t first) {
    Matrix part{m.rows, 2, {}};
    for (std::int64_t i = 0; i < m.rows; ++i)
      part.values.insert(part.values.end(), {m.at(i, first), m.at(i, first + 1)});
    return part;
  };
  const Matrix both = multi_head_attention(x, x, {w.q, w.k, w.v, identity(4)}, {2, 2, true}, reference_core);
  for (std::int64_t h = 0; h < 2; ++h) {
    const Matrix one = multi_head_attention(x, x, {half(w.q, 2 * h), half(w.k, 2 * h), half(w.v, 2 * h), identity(2)},
                                            {1, 1, true}, reference_core);
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(both.at(i, 2 * h), one.at(i, 0), 1e-14);
      EXPECT_NEAR(both.at(i, 2 * h + 1), one.at(i, 1), 1e-14);
    }
  }
}

TEST(MultiHead, ShapesThatDoNotFitAreRefused) {
  const Matrix x = random_matrix(9, 5, 4);
  EXPECT_THROW(multi_head_attention(x, x, weights(4, 4, 4), {3, 3, false}, reference_core), std::invalid_argument);
  EXPECT_THROW(multi_head_attention(x, x, weights(4, 4, 4), {2, 0, false}, reference_core), std::invalid_argument);
  EXPECT_THROW(multi_head_attention(x, x, weights(6, 4, 4), {2, 2, false}, reference_core), std::invalid_argument);
}

TEST(Positions, SinusoidalAsPublished) {
  const Matrix m = sinusoidal_positions(3, 4);
  EXPECT_DOUBLE_EQ(m.at(0, 0), 0);
  EXPECT_DOUBLE_EQ(m.at(0, 1), 1);
  EXPECT_DOUBLE_EQ(m.at(1, 0), std::sin(1.0));
  EXPECT_DOUBLE_EQ(m.at(2, 3), std::cos(2.0 / 100));
}

TEST(LayerNorm, MeanZeroVarianceOne) {
  const Matrix y = layer_norm({1, 4, {1, 2, 3, 4}}, {{}, {}, 0});
  EXPECT_NEAR(y.at(0, 0), -1.5 / std::sqrt(1.25), 1e-15);
  EXPECT_NEAR(y.at(0, 3), 1.5 / std::sqrt(1.25), 1e-15);
  const Matrix moved = layer_norm({1, 2, {1, 3}}, {{2, 2}, {5, 5}, 0});
  EXPECT_NEAR(moved.at(0, 0), 3, 1e-15);
  EXPECT_NEAR(moved.at(0, 1), 7, 1e-15);
}

TEST(Activations, KnownValues) {
  EXPECT_EQ(activate(Activation::relu, -2), 0);
  EXPECT_EQ(activate(Activation::relu, 2), 2);
  EXPECT_NEAR(activate(Activation::gelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(activate(Activation::gelu, -1), -0.15865525393145707, 1e-15);
}

TEST(CrossEntropy, EqualLogitsCostTheLogOfTheCount) {
  const std::vector<double> losses = cross_entropy({2, 4, {0, 0, 0, 0, 1000, 0, 0, 0}}, {2, 0});
  EXPECT_NEAR(losses[0], std::log(4.0), 1e-15);
  EXPECT_EQ(losses[1], 0);  // and no overflow
}

TEST(Block, PostNormOutputsAreNormalised) {
  Block block;
  block.self = weights(4, 4, 4);
  block.self_shape = {2, 2, true};
  block.ffn = {random_matrix(5, 4, 8), random_matrix(6, 8, 4), {}, {}, Activation::relu};
  block.pre_norm = false;
  const BlockStages stages = run_block(random_matrix(7, 5, 4), nullptr, block, reference_core);
  for (std::int64_t i = 0; i < 5; ++i) {
    double mean = 0;
    for (std::int64_t c = 0; c < 4; ++c) mean += stages.output.at(i, c) / 4;
    EXPECT_NEAR(mean, 0, 1e-12);
  }
  block.cross = weights(4, 4, 4);
  EXPECT_THROW(run_block(random_matrix(7, 5, 4), nullptr, block, reference_core), std::invalid_argument);
}

TEST(MultiHead, EveryBackendCanBeTheCore) {
  const Matrix x = random_matrix(9, 7, 12), memory = random_matrix(10, 9, 12);
  // Grouped heads: 4 query heads of 3 on 2 key heads.
  const MultiHeadWeights w = weights(12, 12, 6);
  for (const Matrix* other : {&x, &memory}) {
    const MultiHeadShape shape{4, 2, other == &x};
    const Matrix expected = multi_head_attention(x, *other, w, shape, reference_core);
    const BackendSet set(registered_backends(), {}, {2, ""});
    for (Backend* backend : set.all()) {
      const Matrix got = multi_head_attention(x, *other, w, shape, core_of(*backend, DType::f32));
      for (std::size_t n = 0; n < got.values.size(); ++n) {
        EXPECT_NEAR(got.values[n], expected.values[n], 2e-6) << backend->identity().name;
      }
    }
  }
}

}  // namespace
}  // namespace attest

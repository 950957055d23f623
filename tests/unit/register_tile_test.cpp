// Products of register tiles against a plain loop, for heights, depths and widths around the tile's own.
#include "backends/support/register_tile.h"

#include <gtest/gtest.h>

#include <vector>

namespace attest::support {
namespace {

/// Vectors of 16 bytes, which every machine with vectors has.
template <class T, int Registers>
struct PlainSimd {
  using Real = T;
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr int kLanes = 16 / sizeof(T), kRegisters = Registers;
  static Vector load(const T* from) {
    Vector vector;
    for (int n = 0; n < kLanes; ++n) vector[n] = from[n];
    return vector;
  }
  static Vector set(T value) { return value - Vector{}; }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static void store(T* to, Vector v) {
    for (int n = 0; n < kLanes; ++n) to[n] = v[n];
  }
};

/// Small integers: every sum is exact, whatever its order.
template <class Real>
std::vector<Real> integers(std::int64_t n, int seed) {
  std::vector<Real> numbers(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    numbers[static_cast<std::size_t>(i)] = static_cast<Real>((i * 7 + seed) % 11 - 5);
  return numbers;
}

template <class Simd>
void scores_and_output_are_products(std::int64_t rows, std::int64_t keys, std::int64_t dim, std::int64_t value_dim) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << keys << " keys, dims " << dim << " and " << value_dim);
  using Real = typename Simd::Real;
  using Product = RegisterTile<Simd>;
  const std::int64_t stride = dim + 3, value_stride = value_dim + 1;
  const auto q = integers<Real>(rows * stride, 1), k = integers<Real>(keys * stride, 2);
  const auto v = integers<Real>(keys * value_stride, 3);
  const std::int64_t columns = Product::padded(keys, Product::kWidth), out_columns = Product::padded(value_dim);
  const auto at = [](const std::vector<Real>& m, std::int64_t i) { return m[static_cast<std::size_t>(i)]; };
  constexpr Real kUntouched = 1000;
  std::vector<Real> left(static_cast<std::size_t>(rows * dim)), right(static_cast<std::size_t>(columns * dim));
  std::vector<Real> values(static_cast<std::size_t>(keys * out_columns));
  std::vector<Real> scores(static_cast<std::size_t>((rows + 1) * columns), kUntouched);
  std::vector<Real> out(static_cast<std::size_t>((rows + 1) * out_columns), kUntouched);
  Product::pack_left({q.data(), stride}, rows, dim, 2, left.data());
  Product::pack_transposed({k.data(), stride}, keys, dim, right.data());
  Product::pack_panels({v.data(), value_stride}, keys, value_dim, values.data());

  for (std::int64_t j = 0; j < keys; j += Product::kWidth) {
    Product::template multiply<Product::Left::packed>({left.data(), 0}, rows, right.data() + j * dim, Product::kWidth,
                                                      dim, scores.data() + j, columns, false);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) {
      Real want = 0;
      for (std::int64_t d = 0; j < keys && d < dim; ++d) want += 2 * at(q, r * stride + d) * at(k, j * stride + d);
      EXPECT_EQ(at(scores, r * columns + j), want) << r << ", " << j;
    }
  }
  for (std::int64_t c = 0; c < out_columns;) {
    const std::int64_t width = Product::panel_width(c, value_dim);
    Product::template multiply<Product::Left::rows>({scores.data(), columns}, rows, values.data() + c * keys, width,
                                                    keys, out.data() + c, out_columns, true);
    c += width;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < out_columns; ++c) {
      Real want = kUntouched;
      for (std::int64_t j = 0; c < value_dim && j < keys; ++j)
        want += at(scores, r * columns + j) * at(v, j * value_stride + c);
      EXPECT_EQ(at(out, r * out_columns + c), want) << r << ", " << c;
    }
  }
  EXPECT_EQ(at(scores, rows * columns), kUntouched);
  EXPECT_EQ(at(out, rows * out_columns), kUntouched);
}

TEST(RegisterTile, IsAProductAtEveryEdge) {
  for (std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 17}) {
    for (std::int64_t keys : {1, 3, 8, 9, 17}) {
      for (std::int64_t dim : {1, 4, 7}) {
        scores_and_output_are_products<PlainSimd<double, 16>>(rows, keys, dim, dim + 4);
        scores_and_output_are_products<PlainSimd<double, 32>>(rows, keys, dim, dim + 4);
        scores_and_output_are_products<PlainSimd<float, 16>>(rows, keys, dim, 2 * dim + 1);
      }
    }
  }
}

template <class Real>
void every_rectangle_is_transposed() {
  constexpr Real kUntouched = 1000;
  for (std::int64_t rows = 0; rows <= 9; ++rows) {
    for (std::int64_t columns = 0; columns <= 9; ++columns) {
      const std::int64_t stride = columns + 2, to_stride = rows + 1;
      const auto from = integers<Real>(rows * stride, 4);
      std::vector<Real> to(static_cast<std::size_t>(columns * to_stride), kUntouched);
      transpose(from.data(), stride, rows, columns, Real{3}, to.data(), to_stride);
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < to_stride; ++r) {
          const Real want = r < rows ? 3 * from[static_cast<std::size_t>(r * stride + c)] : kUntouched;
          EXPECT_EQ(to[static_cast<std::size_t>(c * to_stride + r)], want)
              << rows << "x" << columns << ": " << c << ", " << r;
        }
      }
    }
  }
}

TEST(Transpose, EveryRectangleAndNothingBeside) {
  every_rectangle_is_transposed<float>();
  every_rectangle_is_transposed<double>();
}

}  // namespace
}  // namespace attest::support

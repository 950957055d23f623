// What Eigen's public products would cost backends/eigen: the two products of a tile of queries with a tile of keys, as
// the backend has them, and as `scores.noalias() = q * k.transpose(); out.noalias() += scores * v`.
//
//   eigen_products [ROUNDS]
//
// Both ways take turns, on one thread; processor time, medians of ROUNDS (9). The exit code is 1 where they differ by
// more than rounding.
#include <time.h>

#include <Eigen/Core>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "backends/support/eigen/packets.h"
#include "backends/support/register_tile.h"
#include "harness/base/statistics.h"

namespace attest {
namespace {

using Product = support::RegisterTile<support::PacketSimd<float>>;
using Left = Product::Left;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kQueries = 528, kKeys = 512;  ///< the backend's standard tile

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A tile of queries against a tile of keys, by blocks of rows; the weights are the scores as they are.
struct Tiles {
  Tiles(std::int64_t dim, std::int64_t rows)
      : q(Matrix::Random(kQueries, dim)),
        k(Matrix::Random(kKeys, dim)),
        v(Matrix::Random(kKeys, dim)),
        scores(rows, kKeys),
        out(kQueries, dim),
        dim_(dim),
        rows_(rows),
        q_(kQueries * dim),
        k_(Product::padded(kKeys, Product::kWidth) * dim),
        v_(kKeys * Product::padded(dim)) {}

  void public_way() {
    out.setZero();
    for (std::int64_t row = 0; row < kQueries; row += rows_) {
      scores.noalias() = q.middleRows(row, rows_) * k.transpose();
      out.middleRows(row, rows_).noalias() += scores * v;
    }
  }

  void packed_way() {
    out.setZero();
    Product::pack_left({q.data(), dim_}, kQueries, dim_, 1, q_.data());
    Product::pack_transposed({k.data(), dim_}, kKeys, dim_, k_.data());
    Product::pack_panels({v.data(), dim_}, kKeys, dim_, v_.data());
    for (std::int64_t row = 0; row < kQueries; row += rows_) {
      for (std::int64_t j = 0; j < kKeys; j += Product::kWidth) {
        Product::multiply<Left::packed>({q_.data() + row * dim_, 0}, rows_, k_.data() + j * dim_, Product::kWidth, dim_,
                                        &scores(0, j), kKeys, false);
      }
      for (std::int64_t c = 0; c < dim_;) {
        const std::int64_t width = Product::panel_width(c, dim_);
        Product::multiply<Left::rows>({scores.data(), kKeys}, rows_, v_.data() + c * kKeys, width, kKeys, &out(row, c),
                                      dim_, true);
        c += width;
      }
    }
  }

  Matrix q, k, v, scores, out;

 private:
  std::int64_t dim_, rows_;
  Eigen::Array<float, Eigen::Dynamic, 1> q_, k_, v_;
};

/// False where the two ways differ.
bool compare(std::int64_t dim, std::int64_t rows, int rounds) {
  Tiles tiles(dim, rows);
  tiles.public_way();
  const Matrix expected = tiles.out;
  tiles.packed_way();
  const float difference = (tiles.out - expected).cwiseAbs().maxCoeff() / expected.cwiseAbs().maxCoeff();
  std::vector<double> packed, standard;
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    tiles.packed_way();
    const double middle = processor_seconds();
    tiles.public_way();
    standard.push_back(processor_seconds() - middle);
    packed.push_back(middle - start);
  }
  std::printf("dim %3ld, blocks of %3ld rows: packed once %.3f ms, Eigen's products %.2f times that\n",
              static_cast<long>(dim), static_cast<long>(rows), median(packed) * 1e3, median(standard) / median(packed));
  return difference < 1e-4f;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  bool same = rounds > 0;
  for (const long dim : {64, 128}) {
    for (const long rows : {24, 132, 528}) same = attest::compare(dim, rows, rounds) && same;
  }
  return same ? 0 : 1;
}

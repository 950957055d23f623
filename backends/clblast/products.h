// CLBlast's batched products of matrices, one for each head of keys, and the buffers that hold them.
#pragma once

#include <clblast.h>

#include <array>
#include <type_traits>
#include <utility>

#include "backends/clblast/gemm_kernel.h"
#include "backends/support/opencl/device.h"

namespace attest {

inline std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Extents of what enters products, per head of keys. The query heads that share keys lie one behind the other, as rows
/// of one matrix. A pitch is an extent that is filled up with zeros to whole steps of a product.
struct ProductSizes {
  std::int64_t heads, rows, row_pitch, keys, key_pitch, key_dim, key_dim_pitch, value_dim, value_dim_pitch;
  bool gradients;

  explicit ProductSizes(const Call& call)
      : heads(call.batch * call.key_heads),
        rows(call.heads_per_group() * call.query_length),
        row_pitch(call.wants_gradients() ? deep(rows) : rows),
        keys(call.key_length),
        key_pitch(deep(keys)),
        key_dim(call.key_dim),
        key_dim_pitch(deep(key_dim)),
        value_dim(call.value_dim),
        value_dim_pitch(call.wants_gradients() ? deep(value_dim) : value_dim),
        gradients(call.wants_gradients()) {}

  /// Of each buffer its name in messages and its numbers; in the order of ProductBuffers.
  std::array<std::pair<const char*, double>, 6> buffers() const {
    const auto numbers = [&](std::int64_t n, std::int64_t pitch) {
      return static_cast<double>(heads) * static_cast<double>(n) * static_cast<double>(pitch);
    };
    return {{{"the buffer of queries", numbers(row_pitch, key_dim_pitch)},
             {"the buffer of keys", numbers(key_pitch, key_dim_pitch)},
             {"the buffer of values", numbers(key_pitch, value_dim_pitch)},
             {"the score matrix", numbers(row_pitch, key_pitch)},
             {"the buffer of do", gradients ? numbers(row_pitch, value_dim_pitch) : 0},
             {"the gradient of the scores", gradients ? numbers(row_pitch, key_pitch) : 0}}};
  }

 private:
  static std::int64_t deep(std::int64_t n) { return (n + kGemmDepth - 1) / kGemmDepth * kGemmDepth; }
};

/// A matrix for each head of keys, row after row, each `pitch` numbers behind the one before.
struct Matrices {
  cl_mem numbers;
  std::int64_t rows, pitch;
  bool turned = false;  ///< the product reads columns as rows

  Matrices transposed() const { return {numbers, rows, pitch, !turned}; }
};

/// What enters products, on the device.
struct ProductBuffers {
  cl::Buffer queries, keys, values, scores, dout, score_gradients;
  cl::Buffer key_flags, row_flags;  ///< keys and rows that hold NaN or infinity
  cl::Buffer any_flags;             ///< whether there is such a key, and such a row of do

  ProductBuffers(const support::OpenClDevice& device, const ProductSizes& sizes, std::size_t element) {
    const std::array<cl::Buffer*, 6> of_numbers = {&queries, &keys, &values, &scores, &dout, &score_gradients};
    for (std::size_t n = 0; n < of_numbers.size(); ++n)
      *of_numbers[n] = device.allocate(static_cast<std::size_t>(sizes.buffers()[n].second) * element);
    key_flags = device.allocate(as_size(sizes.heads * sizes.key_pitch) * sizeof(cl_int));
    row_flags = device.allocate(as_size(sizes.heads * sizes.row_pitch) * sizeof(cl_int));
    any_flags = device.allocate(2 * sizeof(cl_int));
  }
};

template <class Real>
class Products {
 public:
  /// CLBlast computes them by this kernel from the next `begin` on.
  Products(support::OpenClDevice& device, const GemmKernel& kernel, std::int64_t heads)
      : device_(device), kernel_(kernel), heads_(as_size(heads)) {}

  void begin() {
    constexpr auto kPrecision =
        std::is_same_v<Real, double> ? clblast::Precision::kDouble : clblast::Precision::kSingle;
    use_gemm_kernel(device_.queue().template getInfo<CL_QUEUE_DEVICE>()(), kPrecision, kernel_);
  }

  /// Enqueues c = alpha * a * b for every head: m x k times k x n. `what` stands in messages.
  void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Real alpha, const Matrices& a, const Matrices& b,
                const Matrices& c, const char* what) {
    const auto read = [](const Matrices& x) { return x.turned ? clblast::Transpose::kYes : clblast::Transpose::kNo; };
    cl_command_queue queue = device_.queue()();
    check_clblast(
        clblast::GemmStridedBatched<Real>(clblast::Layout::kRowMajor, read(a), read(b), as_size(m), as_size(n),
                                          as_size(k), alpha, a.numbers, 0, as_size(a.pitch), as_size(a.rows * a.pitch),
                                          b.numbers, 0, as_size(b.pitch), as_size(b.rows * b.pitch), Real{0}, c.numbers,
                                          0, as_size(c.pitch), as_size(c.rows * c.pitch), heads_, &queue),
        what);
  }

 private:
  support::OpenClDevice& device_;
  const GemmKernel kernel_;
  const std::size_t heads_;
};

}  // namespace attest

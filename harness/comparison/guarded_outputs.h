// Output tensors with guards: storage around and between the elements is checked afterwards.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/tensor_bytes.h"
#include "harness/comparison/cause.h"
#include "reference/call/call.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"

namespace attest {

class GuardedOutputs {
 public:
  explicit GuardedOutputs(const Call& call);

  Outputs views();
  /// To be read; the call must have the tensor.
  ConstTensor view(TensorId id) const;
  /// One element; the call must have the tensor.
  double at(TensorId id, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return tensor(id).at(b, h, l, d);
  }
  /// Row (b, h, l) as far as `values` goes.
  void read_row(TensorId id, std::int64_t b, std::int64_t h, std::int64_t l, std::span<double> values) const {
    tensor(id).read_row(b, h, l, values);
  }
  double out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
    return at(TensorId::out, b, h, i, c);
  }
  double lse(std::int64_t b, std::int64_t h, std::int64_t i) const { return at(TensorId::lse, b, h, i, 0); }

  /// Refills everything with the guard pattern.
  void reset();
  /// The same with zeros, on which a result that is added to what was there comes out right.
  void reset_to_zeros();
  /// Where these, made for the same call, hold other bits than `other`: "element 3 of o's storage is 0.5, was 0.25";
  /// empty where they don't.
  std::string difference_from(const GuardedOutputs& other) const;
  /// Empty when only elements of the views were written and every one of them was; else a sentence.
  OutputFault inspect() const;

 private:
  struct Tensor {
    TensorId id;
    std::string name;
    TensorBytes bytes;
    DType dtype = DType::f32;
    TensorPlace place;  ///< its offset holds the guard, too

    /// `place` without guards.
    Tensor(TensorId id, DType dtype, TensorPlace place);
    MutableTensor view();
    double at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
      return load(bytes.data(), dtype, place.element(b, h, l, d));
    }
    void read_row(std::int64_t b, std::int64_t h, std::int64_t l, std::span<double> values) const;
    OutputFault inspect() const;
    /// Of the elements, and of all that is stored, those that don't hold the pattern.
    std::int64_t elements_written() const;
    std::int64_t places_written() const;
    /// Where something was written that is no element; -1 where nothing was.
    std::int64_t find_write_outside() const;
  };
  static constexpr std::int64_t kGuard = 64;  ///< elements before and after

  const Tensor& tensor(TensorId id) const;

  std::vector<Tensor> tensors_;  ///< those of the call, in the order of the table
};

}  // namespace attest

// Output tensors with guards: storage around and between the elements is checked afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/tensor_bytes.h"
#include "harness/comparison/cause.h"
#include "reference/call/call.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensors.h"

namespace attest {

class GuardedOutputs {
 public:
  explicit GuardedOutputs(const Call& call);

  Outputs views();
  double out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const { return out_.at(b, h, i, c); }
  double lse(std::int64_t b, std::int64_t h, std::int64_t i) const { return lse_.at(b, h, i, 0); }
  /// raw, capped, biased or weights; must have been asked for.
  double stage(Output stage, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return tensor_of(stage).at(b, h, i, j);
  }
  /// Row (b, h, i) as far as `values` goes, of o and of a stage.
  void read_out(std::int64_t b, std::int64_t h, std::int64_t i, std::span<double> values) const {
    out_.read_row(b, h, i, values);
  }
  void read_stage(Output stage, std::int64_t b, std::int64_t h, std::int64_t i, std::span<double> values) const {
    tensor_of(stage).read_row(b, h, i, values);
  }
  /// The n-th of present_outputs().
  double present(std::size_t n, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return present_[n].at(b, h, l, d);
  }

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
    std::string name;
    TensorBytes bytes;
    DType dtype = DType::f32;
    TensorPlace place;  ///< its offset holds the guard, too

    Tensor() = default;
    /// `place` without guards.
    Tensor(std::string name, DType dtype, TensorPlace place);
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

  const Tensor& tensor_of(Output stage) const;
  template <class Self, class Visit>
  static void each(Self& self, const Visit& visit);

  Tensor out_, lse_, raw_, capped_, biased_, weights_;
  std::vector<Tensor> present_;
  std::vector<std::optional<MutableTensor> Outputs::*> places_;  ///< of each present output
};

}  // namespace attest

// Output tensors with guards: storage around and between the elements is checked afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/tensor_bytes.h"
#include "reference/call.h"
#include "reference/tensor_place.h"
#include "reference/tensors.h"

namespace attest {

class GuardedOutputs {
 public:
  explicit GuardedOutputs(const Call& call);

  Outputs views();
  double out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const { return out_.at(b, h, i, c); }
  double lse(std::int64_t b, std::int64_t h, std::int64_t i) const { return lse_.at(b, h, i, 0); }
  /// raw, capped, biased or weights; must have been asked for.
  double stage(Output stage, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
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
  std::string inspect() const;

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
    double at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const;
    std::string inspect() const;
  };
  static constexpr std::int64_t kGuard = 64;  ///< elements before and after

  template <class Self, class Visit>
  static void each(Self& self, const Visit& visit);

  Tensor out_, lse_, raw_, capped_, biased_, weights_;
  std::vector<Tensor> present_;
  std::vector<std::optional<MutableTensor> Outputs::*> places_;  ///< of each present output
};

}  // namespace attest

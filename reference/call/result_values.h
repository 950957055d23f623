// Numbers for the elements of results, a list for each.
#pragma once

#include <array>
#include <vector>

#include "reference/call/tensors.h"

namespace attest {

class ResultValues {
 public:
  std::vector<double>& of(TensorId result) { return lists_[index(result)]; }
  const std::vector<double>& of(TensorId result) const { return lists_[index(result)]; }

 private:
  static constexpr std::size_t kFirst = static_cast<std::size_t>(TensorId::out);
  static constexpr std::size_t index(TensorId result) { return static_cast<std::size_t>(result) - kFirst; }

  std::array<std::vector<double>, kTensorCount - kFirst> lists_;
};

}  // namespace attest

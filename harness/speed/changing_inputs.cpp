#include "harness/speed/changing_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace attest {

double last_level_cache_bytes() {
  // The kernel knows what this processor shares; the C library may tell the whole package's.
  double largest = 0;
  for (const char* index : {"index2", "index3", "index4"}) {
    std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/") + index + "/size");  // "32768K"
    double size = 0;
    char unit = 0;
    if (file >> size >> unit) largest = std::max(largest, size * (unit == 'M' ? 0x1p20 : 0x1p10));
  }
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (largest == 0)
    largest = static_cast<double>(std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE)));
#endif
  return largest;
}

ChangingInputs::ChangingInputs(const CaseInputs& inputs, std::uint64_t seed) : random_(seed) {
  for (const TensorStorage* tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.past_k, &inputs.past_v}) {
    set_bytes_ += static_cast<double>(tensor->bytes());
  }
  const double cache = last_level_cache_bytes();
  const bool only_one_fits = set_bytes_ <= cache && 2 * set_bytes_ > cache;
  sets_.assign(only_one_fits ? 1 : 2, inputs);
  for (const CaseInputs& set : sets_) views_.push_back(set.views());
}

const Inputs& ChangingInputs::next(bool keys) {
  turn_ = (turn_ + 1) % sets_.size();
  CaseInputs& set = sets_[turn_];
  draw_signs(set.q);
  draw_signs(set.v);
  if (set.past_v.bytes() > 0) draw_signs(set.past_v);
  if (keys) draw_signs(set.k);
  return views_[turn_];
}

void ChangingInputs::draw_signs(TensorStorage& tensor) {
  const ConstTensor view = tensor.view();
  if (view.shape[3] == 0) return;
  const std::uint64_t bits = random_() | 1u;
  const auto d = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(view.shape[3]));
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    const std::int64_t rows = view.starts ? view.starts[b + 1] - view.starts[b] : view.shape[2];
    for (std::int64_t h = 0; h < view.shape[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        // A function of the place: where views overlap, the same element gets the same sign again.
        const std::int64_t at = view.offset(b, h, l, d);
        const bool minus = (static_cast<std::uint64_t>(at + 1) * bits) >> 63;
        const double value = std::fabs(load(view.data, view.dtype, at));
        tensor.set(b, h, l, d, minus ? -value : value);
      }
    }
  }
}

}  // namespace attest

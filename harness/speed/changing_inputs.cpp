#include "harness/speed/changing_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "harness/cases/other_data.h"

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
  sets_.resize(only_one_fits ? 1 : 2);
  for (Set& set : sets_) {
    set.shown = set.kept = inputs;
    set.views = set.shown.views();
  }
}

const Inputs& ChangingInputs::next(bool keys) {
  turn_ = (turn_ + 1) % sets_.size();
  Set& set = sets_[turn_];
  change(set, &CaseInputs::q);
  change(set, &CaseInputs::v);
  if (set.shown.past_v.bytes() > 0) change(set, &CaseInputs::past_v);
  if (keys) change(set, &CaseInputs::k);
  return set.views;
}

const Inputs& ChangingInputs::stage(const CaseInputs& data) {
  turn_ = (turn_ + 1) % sets_.size();
  staged_ = &data;
  copy_data(data, sets_[turn_].shown);
  return sets_[turn_].views;
}

const CaseInputs& ChangingInputs::kept() { return staged_ ? *staged_ : kept(sets_[turn_]); }

const CaseInputs& ChangingInputs::kept(Set& set) {
  for (const Change& change : set.pending) apply(change, set.kept);
  set.pending.clear();
  return set.kept;
}

bool ChangingInputs::intact() { return same_data(sets_[turn_].shown, kept()); }

bool ChangingInputs::all_intact() {
  return intact() && std::all_of(sets_.begin(), sets_.end(),
                                 [&](Set& set) { return &set == &sets_[turn_] || same_data(set.shown, kept(set)); });
}

void ChangingInputs::restore() {
  staged_ = nullptr;
  for (Set& set : sets_) copy_data(kept(set), set.shown);
}

void ChangingInputs::change(Set& set, TensorStorage CaseInputs::*tensor) {
  const std::int64_t features = (set.shown.*tensor).shape()[3];
  if (features == 0) return;
  const std::uint64_t bits = random_() | 1u;
  const Change change{tensor, static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(features)), bits};
  apply(change, set.shown);
  // Signs follow the last change alone: what came before it needs no copying.
  std::erase_if(set.pending, [&](const Change& earlier) {
    return earlier.tensor == change.tensor && earlier.feature == change.feature;
  });
  set.pending.push_back(change);
}

void ChangingInputs::apply(const Change& change, CaseInputs& data) {
  TensorStorage& tensor = data.*change.tensor;
  const ConstTensor view = tensor.view();
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    const std::int64_t rows = view.starts ? view.starts[b + 1] - view.starts[b] : view.shape[2];
    for (std::int64_t h = 0; h < view.shape[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        // A function of the place: where views overlap, the same element gets the same sign again.
        const std::int64_t at = view.offset(b, h, l, change.feature);
        const bool minus = (static_cast<std::uint64_t>(at + 1) * change.bits) >> 63;
        const double value = std::fabs(load(view.data, view.dtype, at));
        tensor.set(b, h, l, change.feature, minus ? -value : value);
      }
    }
  }
}

}  // namespace attest

// The inputs of one case: storage that owns them, filled from the case line or read from a file.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/tensor_storage.h"
#include "reference/call/problem.h"
#include "reference/call/tensors.h"
#include "reference/operators/operator_tensors.h"

namespace attest {

/// Owns what a backend reads. Movable; views stay valid while it lives.
struct CaseInputs {
  TensorStorage q, k, v, mask, past_k, past_v;
  bool has_mask = false, additive = false;
  Index4 mask_shape{};  ///< B, Hq, Lq, Lk: the mask as broadcast
  std::vector<std::int32_t> pages;
  std::int64_t page_size = 0, page_stride = 0;
  std::vector<std::uint8_t> blocks, keep;
  BlockMask block_extents{};
  std::vector<double> slopes, sinks;
  std::vector<ExtraInput> extra_specs;  ///< what this operator reads besides
  std::vector<TensorStorage> extra;     ///< one for each

  Inputs views() const;
};

/// Throws UserError when the storage type can't hold a value of the fill.
CaseInputs make_inputs(const Problem& problem);

/// Everything but q, k, v, the mask and cached keys: slopes, sinks, pages, block mask, and what the operator wants
/// besides. For lines and files alike.
void make_small_inputs(const Problem& problem, CaseInputs& inputs);

}  // namespace attest

// The gradients of softmax attention, in float64: of a loss whose derivatives by the output, do, and by lse, dlse, are
// given. Symbols are those of attention.h; r_ij is dropout's factor, 1 without dropout.
//
// clang-format off
//   dP_ij = r_ij * <do_i, v_j>                                     where i sees j
//   D_i   = sum over visible j of p_ij * dP_ij
//   dS_ij = p_ij * (dP_ij - D_i + dlse_i)                          by the biased score; 0 where hidden
//   dT_ij = dS_ij * (1 - tanh(t_ij / softcap)^2), or dS_ij         by the raw score
//   dq_i  = scale * sum over j of dT_ij * k_j
//   dk_j  = scale * sum over i and the query heads of the group of dT_ij * q_i
//   dv_j  = sum over i and the query heads of the group of r_ij * p_ij * do_i
//   dmask = dS_ij, summed over the axes along which the mask is broadcast
//   dsink = sum over b and i of p_sink * (dlse_i - D_i)
// clang-format on
//
// A row that sees nothing gives nothing to any gradient but its sink's, whatever stands in its do. Hidden keys leave
// every sum, and a key that no query sees has gradients of exactly 0.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/softmax/attention.h"

namespace attest {

/// The derivatives of the loss by one row of the output, Dv of them, and by its lse.
struct RowLoss {
  std::vector<double> out;
  double lse = 0;
};

/// What one query row gives to the gradients. Lists have Lk entries.
struct RowGradient {
  std::vector<double> products;  ///< dP; 0 where hidden
  double mean = 0;               ///< D
  std::vector<double> scores;    ///< dS
  std::vector<double> raw;       ///< dT
  double sink = 0;               ///< by the sink's logit
};

/// `row` is a row of `head`. Reuses the gradient's storage.
void differentiate(const Head& head, const Row& row, const RowLoss& loss, RowGradient& gradient);

/// do and dlse of a row.
RowLoss loss_of(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i);

}  // namespace attest

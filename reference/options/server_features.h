// What the calls of servers have, for code that gives a call a class of values: dynamic, append, latent and select.
#pragma once

#include "reference/call/problem.h"

namespace attest {

/// Neither cached keys of their own nor gradients, which calls whose lengths are data and calls that append don't have.
void give_launch(Call& call);
void give_append(Call& call);
/// Storage of q, k or v in 8 bits with scales of this kind.
void give_scales(Call& call, TensorId stored, const ScaleSpec& spec);
/// Likewise, where it has none, or one for the tensor: a scale for each row, or for each head where rows are packed.
void give_scales_of_rows(Call& call, TensorId stored);
void give_select(Problem& problem);
void give_latent(Problem& problem, bool narrow_values);
void give_latent_parts(Problem& problem);

}  // namespace attest

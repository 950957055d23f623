// What a trace shows of the gradients of one head, in the order in which they are computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/stage.h"
#include "reference/call/tensors.h"
#include "reference/softmax/attention.h"

namespace attest {

/// do, dP, D, dS, with softcap dT, dq, and the head's share of dk and dv. `rows` are those of the head, which is
/// number `h` of batch `b`; the call asks for gradients.
std::vector<Stage> gradient_stages(const Head& head, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                   const std::vector<Row>& rows, const std::vector<std::string>& queries,
                                   const std::vector<std::string>& keys);

}  // namespace attest

// The merge of partial results of softmax attention (part_merge.h) as an operator.
#pragma once

#include "reference/operators/operator.h"

namespace attest {

const Operator& merge_operator();

}  // namespace attest

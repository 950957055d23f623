// The rules of linear attention behind the interface of operators.
#pragma once

#include "reference/operators/operator.h"

namespace attest {

const Operator& linear_operator();

}  // namespace attest

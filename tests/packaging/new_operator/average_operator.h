// The operator that tests/packaging/new_options.sh adds: o_i = scale / Lk * sum over j of <q_i, k_j> v_j.
#pragma once
#include "reference/operators/operator.h"
namespace attest {
const Operator& average_operator();
}

// A call as Python sees it: attest.Call, read only.
#pragma once

#include <nanobind/nanobind.h>

#include "reference/call/call.h"

namespace attest {

/// Adds the class to the module.
void define_call(nanobind::module_& module);

}  // namespace attest

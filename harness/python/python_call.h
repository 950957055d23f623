// A call as Python sees it: attest.Call, read only.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "reference/call/call.h"

namespace attest {

/// What the call uses, in words of the case language: "dtype=f32", "grouped heads", "mask=bool". The list is that of
/// the plug-in interface (ATTEST_HAS_...). An option that it can't tell stands there by its key.
std::vector<std::string> feature_names(const Call& call);
/// All that there are, in order.
std::vector<std::string> all_feature_names();

/// Adds the class to the module.
void define_call(nanobind::module_& module);

}  // namespace attest

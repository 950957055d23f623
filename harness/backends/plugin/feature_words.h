// What a call uses, in words of the case language: how plug-ins and Python are told, and how they say what they know.
#pragma once

#include <string>
#include <vector>

#include "reference/call/call.h"

namespace attest {

/// Those of the call, in the order of the whole list: "dtype=f32", "grouped heads", "mask=bool".
std::vector<std::string> feature_words(const Call& call);

/// All that there are.
std::vector<std::string> all_feature_words();

}  // namespace attest

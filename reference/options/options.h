// The table of options: a row for each key of the case language, in the order in which canonical lines print them.
//
// To add an option: a member of Call (reference/call/call.h), its row here, and what it means in reference/. Parser,
// printer, shrinker, fuzzer, random cases, files of tensors, isolation, coverage and `attest list options` walk over
// the rows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/options/option.h"

namespace attest {

/// Made once.
std::span<const Option> options();

/// nullptr when no row has this key.
const Option* find_option(std::string_view key);

/// The rows that are set, in order.
std::vector<const Option*> set_options(const ProblemView& view);

/// "key", "key=value", or "" where the option is not set.
std::string token_of(const Option& option, const ProblemView& view);

}  // namespace attest

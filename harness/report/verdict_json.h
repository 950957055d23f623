// A verdict as a line of JSON. One table names each field for both directions, so that what is written can be read.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "harness/verdict/verdict.h"

namespace attest {

/// Keeps its fields in the order in which they were written.
using OrderedJson = nlohmann::ordered_json;

/// What a line of the file is: this key, and its values for the header and for a verdict.
inline constexpr const char *kKindKey = "kind", *kRunKind = "run", *kVerdictKind = "verdict";
/// In the header: the build of attest that wrote the file.
inline constexpr const char* kCommitKey = "commit";

/// All of a verdict but its storage type, which is its case's, and its cause, which groups the failures of one run.
OrderedJson verdict_to_json(const Verdict& verdict);
/// nullopt where a field is missing or is not what verdict_to_json writes.
std::optional<Verdict> verdict_from_json(const OrderedJson& json);

}  // namespace attest

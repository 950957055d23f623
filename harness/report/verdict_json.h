// A verdict as a line of JSON. One table names each field for both directions, so that what is written can be read.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/verdict/verdict.h"

namespace attest {

/// Keeps its fields in the order in which they were written.
using OrderedJson = nlohmann::ordered_json;

/// What a line of the file is: this key, and its values for the header and for a verdict.
inline constexpr const char *kKindKey = "kind", *kRunKind = "run", *kVerdictKind = "verdict";
/// The smallest case that fails as another does; and the last line.
inline constexpr const char *kShrunkKind = "shrunk", *kSummaryKind = "summary";
/// A verdict of an earlier run that the present one did not come to or did not ask for.
inline constexpr const char* kKeptKind = "kept";
/// In the header: what the verdicts depend on besides their cases, an object of strings.
inline constexpr const char* kConditionsKey = "conditions";

/// Version of the files that this program writes: 2 has `cause` and `error_map`. Keys are added, never altered.
inline constexpr int kVerdictSchema = 3;

/// The text behind a key; "" where `json` is no object or has no text there.
std::string text_of(const OrderedJson& json, const char* key);
/// Whether it is the first line of a file of verdicts.
bool is_run_header(const OrderedJson& json);
/// Throws UserError where `header` is of a newer schema than this program reads; `name` stands in the message.
void require_known_schema(const OrderedJson& header, const std::string& name);

/// All of a verdict but its storage type, which is its case's.
OrderedJson verdict_to_json(const Verdict& verdict);
/// nullopt where a field is missing or is not what verdict_to_json writes. Takes verdicts that were kept, too.
std::optional<Verdict> verdict_from_json(const OrderedJson& json);

}  // namespace attest

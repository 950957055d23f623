// Mutants that compute the same as the original, each with the reason why.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace attest::mutants {

/// By the mutant's text, the reason. The file holds a mutant's text on a line, then its reason, indented; # comments.
/// Throws UserError for a mutant without a reason or one that stands twice.
std::map<std::string, std::string> read_equivalents(const std::filesystem::path& path);

}  // namespace attest::mutants

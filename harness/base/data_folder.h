// Where the files that come with attest lie.
#pragma once

#include <filesystem>
#include <string>

namespace attest {

/// The folder of `what`: "cases", "golden" or "backends". In the installation that a program of others was linked with,
/// beside an installed program (share/attest), else in the tree that it was built from.
std::filesystem::path data_folder(const std::string& what);

}  // namespace attest

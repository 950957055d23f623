// Where the files that come with attest lie.
#pragma once

#include <filesystem>
#include <string>

namespace attest {

/// The folder of `what`: "cases", "golden" or "backends", whether it is there or not. In the installation that a
/// program of others was linked with; else beside the program: in the installation that it lies in (share/attest), or
/// in the build, whose share/attest leads to the sources. No folder of the machine that built it is known to the
/// program.
std::filesystem::path data_folder(const std::string& what);
/// The same folder, which must be there. Throws UserError.
std::filesystem::path required_data_folder(const std::string& what);

/// A path as seen from the current folder, while there is one.
std::filesystem::path seen_from_here(const std::filesystem::path& path);

}  // namespace attest

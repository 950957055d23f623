// How much a stranger may write to its scratch folder.
//
// The folder is a file system of its own in memory where the system lets a process have one, which ends with the
// process. Where it doesn't, the harness looks at the folder's size now and then, and ends who has written too much.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace attest {

inline constexpr std::uintmax_t kMostScratchBytes = std::uintmax_t{256} << 20;
inline constexpr std::uintmax_t kMostScratchFiles = 10'000;

/// "more than 256 MiB or 10000 files in its scratch folder", for a sentence.
std::string scratch_excess_text();

/// Whether a folder holds more than it may, with the open files of `process` that have no name any more. Both may
/// change meanwhile.
bool has_scratch_excess(const std::filesystem::path& folder, pid_t process = 0);

/// Removes a folder with all that a stranger has put there, folders that can't be entered among them.
void remove_strangers_folder(const std::filesystem::path& folder);

}  // namespace attest

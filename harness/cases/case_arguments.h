// Cases as they come from a command line.
#pragma once

#include <string>
#include <vector>

namespace attest {

/// One argument for each case. A line may have come as several, as a shell gives what isn't quoted: `seq=4 dim=4`. One
/// begins with an argument that has a key which the line before has already; "-" and files stand alone.
std::vector<std::string> joined_arguments(const std::vector<std::string>& arguments);

}  // namespace attest

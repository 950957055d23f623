// What a printed command must repeat of the run under way, so that whoever types it gets what was seen.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct RunWords {
  std::vector<std::string> of_every_command;  ///< "--threads", "3", "--timeout", "5"
  std::vector<std::string> of_check;          ///< "--once"
  std::string program = "attest";             ///< that has these backends
};

/// Set by each command before its backends are made; empty where all is as it is without options.
inline RunWords& run_words() {
  static RunWords words;
  return words;
}

}  // namespace attest

// How this program is started once more, as a worker.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attest {

/// Of a program that is nothing but attest: itself. An interpreter in which attest is a module must be told to run it.
struct Restart {
  std::string file = "/proc/self/exe";  ///< this very program, even when another stands at its path by now
  std::vector<std::string> words;       ///< in front of the command's own; empty: the program's path
  std::vector<std::string> readable{};  ///< folders with code that it may load later: those of an interpreter
};

/// Set before the first worker, or not at all.
inline Restart& restart() {
  static Restart how;
  return how;
}

/// The same of workers that load objects of Python, where this program has no interpreter: one that has attest as a
/// module. Nothing: they are started as all others.
inline std::optional<Restart>& restart_in_python() {
  static std::optional<Restart> how;
  return how;
}

}  // namespace attest

// The interpreter in which submissions in Python run: one that has attest as a module, which speaks a worker's part.
#pragma once

#include <string>
#include <vector>

namespace attest {

/// From now on workers that load objects of Python are started in it, and none imports what lies in the folder that
/// this program was started in. Of `python -m attest` it is that interpreter. Otherwise `interpreter` is a program's
/// name or path, where empty python3. Throws UserError where that can't be started, has no attest, or has one of
/// another version.
void need_interpreter(const std::string& interpreter);

/// What runs a script that needs nothing but Python: `interpreter`, or this one, or python3.
std::string python_program(const std::string& interpreter);

struct ProgramOutput {
  std::string text;  ///< of standard output and standard error
  int status = -1;   ///< as of waitpid; -1: it couldn't be started
};
ProgramOutput output_of(const std::vector<std::string>& words);

}  // namespace attest

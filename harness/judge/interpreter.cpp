#include "harness/judge/interpreter.h"

#include <stdio.h>

#include <filesystem>
#include <sstream>

#include "harness/backends/plugin/foreign_backends.h"
#include "harness/base/restart.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

/// Without the folder that it was started in, where a submission's file may be called as a module of the library.
#define WITHOUT_THIS_FOLDER "import os, sys; sys.path[:] = [p for p in sys.path if p and p != os.getcwd()]; "
constexpr const char* kWorkerOfPython = WITHOUT_THIS_FOLDER "from attest.__main__ import main; sys.exit(main())";
constexpr const char* kFacts =
    WITHOUT_THIS_FOLDER "import attest; print('attest', attest.__version__); print(sys.executable)";
#undef WITHOUT_THIS_FOLDER

}  // namespace

ProgramOutput output_of(const std::vector<std::string>& words) {
  ProgramOutput said;
  FILE* const pipe = popen((shell_line(words) + " 2>&1 </dev/null").c_str(), "re");
  if (!pipe) return said;
  char buffer[1024];
  for (std::size_t got = 1; got > 0; said.text.append(buffer, got)) got = fread(buffer, 1, sizeof buffer, pipe);
  said.status = pclose(pipe);
  return said;
}

std::string python_program(const std::string& interpreter) {
  if (!interpreter.empty()) return interpreter;
  return python_objects().make ? restart().file : "python3";
}

void need_interpreter(const std::string& interpreter) {
  if (python_objects().make) {
    // The command line of this interpreter: workers must not import what lies in the user's folder.
    restart().words = {restart().file, "-c", kWorkerOfPython};
    return;
  }
  if (restart_in_python()) return;
  const std::string program = interpreter.empty() ? "python3" : interpreter;
  std::istringstream lines(output_of({program, "-c", kFacts}).text);
  std::string first, file, last;
  std::getline(lines, first);
  std::getline(lines, file);
  const std::string expected = std::string("attest ") + ATTEST_VERSION;
  if (first == expected && std::filesystem::path(file).is_absolute()) {
    restart_in_python() = Restart{file, {file, "-c", kWorkerOfPython}};
    return;
  }
  if (first.starts_with("attest ")) {
    throw UserError("Python: " + program + " has " + printable_line(first) + ", and this is " + expected +
                    ": install the same version for it");
  }
  throw UserError("Python: attest is no module of " + program +
                  ": install attest for Python there, or name another interpreter with --interpreter");
}

}  // namespace attest

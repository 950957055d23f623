#include "harness/verdict/printed_command.h"

#include "harness/base/backend_source.h"
#include "harness/base/run_words.h"
#include "harness/base/text.h"
#include "harness/tuning/parameters.h"

namespace attest {

std::string printed_command(const std::string& command, const Identity& backend, const std::string& what,
                            const std::string& case_line) {
  if (backend.plugin.starts_with(kObjectHere)) return python_line(command, backend.plugin, case_line);
  std::string line = parameters_prefix(backend) + command_with(command, backend.plugin);
  const RunWords& words = run_words();
  if (!words.of_every_command.empty()) line += " " + shell_line(words.of_every_command);
  if (command == "check" && !words.of_check.empty()) line += " " + shell_line(words.of_check);
  return line + " --backend " + backend.name + (what.empty() ? "" : " " + what);
}

}  // namespace attest

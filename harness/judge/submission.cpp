#include "harness/judge/submission.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "harness/backends/isolation/confined_program.h"
#include "harness/base/backend_source.h"
#include "harness/base/data_folder.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

/// Where <attest/attest_plugin.h> lies: in the sources, or among an installation's headers.
std::filesystem::path folder_of_header() {
  const std::filesystem::path backends = data_folder("backends");
  for (const auto& folder : {backends / "plugin", backends / "../../../include"}) {
    std::error_code error;
    if (std::filesystem::exists(folder / "attest" / "attest_plugin.h", error))
      return std::filesystem::canonical(folder, error);
  }
  throw UserError("attest_plugin.h is nowhere: sources can't be compiled in this installation");
}

std::vector<std::string> compiler_of(const std::string& extension) {
  if (extension == ".c") return {"cc", "-std=c11"};
  return {"c++", "-std=c++20"};
}

std::filesystem::path compiled(const std::filesystem::path& file, const ScratchFolder& built,
                               const SandboxOptions& sandbox, std::chrono::milliseconds limit) {
  const std::filesystem::path header = folder_of_header(), library = built.path() / "submission.so";
  std::vector<std::string> words = compiler_of(file.extension());
  words.insert(words.end(), {"-O3", "-march=native", "-fPIC", "-shared", "-pthread", "-fdiagnostics-color=never", "-I",
                             header, "-o", library, file, "-lm"});
  ConfinedProgram program{words, {file.parent_path(), header}, built.path(), sandbox};
  const ProgramEnd end = run_confined(program, limit);
  if (end.timed_out)
    throw InvalidSubmission(fmt::format("compiling took more than {:g} s", static_cast<double>(limit.count()) / 1000));
  if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0) {
    const std::string error = first_error(end.output);
    throw InvalidSubmission("it doesn't compile: " + (error.empty() ? "the compiler gave no reason" : error));
  }
  return library;
}

}  // namespace

std::string first_error(const std::string& output) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    const bool tells =
        line.find("error:") != std::string::npos || line.find("undefined reference") != std::string::npos;
    if (!tells) continue;
    first = line;
    break;
  }
  // The folder is the judge's business.
  const std::size_t colon = first.find(':'), slash = first.rfind('/', colon);
  return colon == std::string::npos || slash == std::string::npos ? first : first.substr(slash + 1);
}

Submission prepare_submission(const std::string& path, const SandboxOptions& sandbox, std::chrono::milliseconds limit) {
  const std::size_t object = path.find(".py:");
  const std::filesystem::path file =
      std::filesystem::absolute(object == std::string::npos ? path : path.substr(0, object + 3));
  if (!std::filesystem::is_regular_file(file)) throw UserError(path + ": there is no such file");
  const std::string extension = file.extension();
  Submission made;
  if (extension == ".so") {
    made.source = file;
  } else if (extension == ".py") {
    made.source = python_source(
        object == std::string::npos ? file.string() + ":attention" : file.string() + path.substr(object + 3), {});
  } else if (extension == ".c" || extension == ".cc" || extension == ".cpp") {
    made.built = std::make_unique<ScratchFolder>();
    made.source = compiled(file, *made.built, sandbox, limit);
  } else {
    throw UserError(path + ": a submission is a file .c, .cc, .cpp, .so or .py");
  }
  return made;
}

}  // namespace attest

#include "harness/judge/submission.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "harness/backends/isolation/confined_program.h"
#include "harness/backends/isolation/scratch_space.h"
#include "harness/base/backend_source.h"
#include "harness/base/data_folder.h"
#include "harness/base/user_error.h"
#include "harness/judge/interpreter.h"
#include "harness/judge/solution.h"

namespace attest {
namespace {

/// What attest for Python takes for the object that a file is about.
constexpr const char* kAnyObject = ":*";

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

/// Compilers of C++ take files of C for C++: each kind has its own.
constexpr const char* kOfC[] = {"cc", "-std=c11"};
constexpr const char* kOfCpp[] = {"c++", "-std=c++20"};

class Compilation {
 public:
  Compilation(const std::filesystem::path& root, const ScratchFolder& built, const SandboxOptions& sandbox,
              std::chrono::milliseconds limit)
      : root_(root), header_(folder_of_header()), built_(built), sandbox_(sandbox), limit_(limit) {}

  template <std::size_t N>
  void run(const char* const (&compiler)[N], const std::vector<std::string>& words) {
    std::vector<std::string> all(compiler, compiler + N);
    all.insert(all.end(),
               {"-O3", "-march=native", "-fPIC", "-pthread", "-fdiagnostics-color=never", "-I", header_, "-I", root_});
    all.insert(all.end(), words.begin(), words.end());
    const ProgramEnd end = run_confined({all, {root_, header_}, built_.path(), sandbox_}, limit_);
    if (end.wrote_too_much) throw InvalidSubmission("compiling wrote " + scratch_excess_text());
    if (end.timed_out) {
      throw InvalidSubmission(
          fmt::format("compiling took more than {:g} s", static_cast<double>(limit_.count()) / 1000));
    }
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) return;
    const std::string error = first_error(end.output);
    throw InvalidSubmission("it doesn't compile: " + (error.empty() ? "the compiler gave no reason" : error));
  }

 private:
  std::filesystem::path root_, header_;
  const ScratchFolder& built_;
  const SandboxOptions& sandbox_;
  std::chrono::milliseconds limit_;
};

std::filesystem::path compiled(const SubmissionFiles& files, const ScratchFolder& built, const SandboxOptions& sandbox,
                               std::chrono::milliseconds limit) {
  std::vector<std::string> of_c, of_cpp;
  for (const std::filesystem::path& file : files.main)
    (file.extension() == ".c" ? of_c : of_cpp).push_back(files.root / file);
  std::filesystem::path library = built.path() / "submission.so";
  std::vector<std::string> words = {"-shared", "-o", library};
  Compilation compilation(files.root, built, sandbox, limit);
  if (of_cpp.empty()) {
    words.insert(words.end(), of_c.begin(), of_c.end());
    words.emplace_back("-lm");
    compilation.run(kOfC, words);
    return library;
  }
  if (!of_c.empty()) {
    std::vector<std::string> objects = {"-c"};
    objects.insert(objects.end(), of_c.begin(), of_c.end());
    compilation.run(kOfC, objects);
    for (const std::string& file : of_c)
      words.push_back(built.path() / std::filesystem::path(file).filename().replace_extension(".o"));
  }
  words.insert(words.end(), of_cpp.begin(), of_cpp.end());
  words.emplace_back("-lm");
  compilation.run(kOfCpp, words);
  return library;
}

/// Where the sources of a solution are written, beside its file.
constexpr const char* kSources = "sources";

/// A solution becomes a submission in Python.
void unpack(Submission& taken) {
  const Solution solution = read_solution(taken.files.root / taken.files.main.front());
  write_sources(solution, taken.files.root / kSources);
  taken.files.main = {std::filesystem::path(kSources) / solution.main};
  taken.object = ":" + solution.function;
  taken.into = solution.into;
}

/// Options of a Python object that say how a board calls it.
std::vector<std::string> words_of_call(const Submission& submission, const std::string& call) {
  const bool is_solution = submission.files.kind == SubmissionKind::solution;
  if (call.empty()) {
    if (is_solution) throw InvalidSubmission("a solution is judged on a task that is made of its definition");
    return {};
  }
  if (!is_solution) return {"--call", call};
  const std::size_t name = std::min(call.find(' '), call.size());
  return {"--call", submission.object.substr(1) + (submission.into ? " into" : "") + call.substr(name)};
}

}  // namespace

std::string first_error(const std::string& output) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    const bool tells = line.find("rror:") != std::string::npos || line.find("undefined reference") != std::string::npos;
    if (!tells) continue;
    first = line;
    break;
  }
  // The folder is the judge's business.
  const std::size_t colon = first.find(':'), slash = first.rfind('/', colon);
  return colon == std::string::npos || slash == std::string::npos ? first : first.substr(slash + 1);
}

Submission take_submission(const std::string& path, const std::string& interpreter) {
  constexpr std::string_view kExtension = ".py";
  // A stranger's file may be called like another's file with an object behind it.
  std::error_code error;
  const bool whole = std::filesystem::exists(path, error);
  const std::size_t object = whole ? std::string::npos : path.rfind(std::string(kExtension) + ':');
  const std::size_t end = object == std::string::npos ? path.size() : object + kExtension.size();
  Submission taken;
  taken.files = submission_files(path.substr(0, end));
  const bool is_solution = taken.files.kind == SubmissionKind::solution;
  if (taken.files.kind == SubmissionKind::python || is_solution) need_interpreter(interpreter);
  taken.folder = std::make_unique<ScratchFolder>();
  copy_submission(taken.files, taken.folder->path());
  taken.files.root = taken.folder->path();
  taken.content = fingerprint_of(taken.files);
  taken.object = path.substr(end);
  if (is_solution) unpack(taken);
  return taken;
}

LoadableSubmission made_loadable(const Submission& submission, const std::string& call, const SandboxOptions& sandbox,
                                 std::chrono::milliseconds limit) {
  const SubmissionFiles& files = submission.files;
  const std::filesystem::path main = files.root / files.main.front();
  LoadableSubmission made;
  switch (files.kind) {
    case SubmissionKind::library: made.source = main; break;
    case SubmissionKind::python:
    case SubmissionKind::solution:
      made.source = python_source(main.string() + (submission.object.empty() ? kAnyObject : submission.object),
                                  words_of_call(submission, call));
      break;
    case SubmissionKind::sources:
      made.built = std::make_unique<ScratchFolder>();
      made.source = compiled(files, *made.built, sandbox, limit);
      break;
  }
  return made;
}

}  // namespace attest

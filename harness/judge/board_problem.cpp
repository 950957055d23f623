#include "harness/judge/board_problem.h"

#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/judge/interpreter.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMaker = "make_task.py";

}  // namespace

bool is_board_problem(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".json" || extension == ".py" || extension == ".yml" || extension == ".yaml";
}

std::string task_of_problem(const fs::path& path, const std::string& interpreter) {
  const fs::path maker = data_folder("boards") / kMaker;
  std::error_code error;
  if (!fs::exists(maker, error)) throw UserError(maker.string() + " is missing: it belongs to attest");
  // Nothing that lies beside the problem is imported.
  std::vector<std::string> words = {python_program(interpreter), "-I", maker, path};
  const fs::path workloads = fs::path(path).replace_extension(".jsonl");
  if (path.extension() == ".json" && fs::exists(workloads, error)) words.push_back(workloads);
  const ProgramOutput made = output_of(words);
  if (made.status == 0) return made.text;
  std::string reason = made.text;
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  reason = reason.substr(reason.rfind('\n') + 1);
  const std::string beginning = std::string(kMaker) + ": ";
  if (reason.starts_with(beginning)) reason = reason.substr(beginning.size());
  if (reason.empty()) reason = words.front() + " can't be run";
  throw UserError("--task " + path.string() + ": no task can be made of it: " + printable_line(reason));
}

std::string name_of_task(const fs::path& path) {
  const fs::path folder = fs::absolute(path).parent_path().filename();
  return is_board_problem(path) && path.stem() == "task" && !folder.empty() ? folder.string() : path.stem().string();
}

}  // namespace attest

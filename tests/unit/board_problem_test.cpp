// Problems of boards as tasks. How submissions to them are judged is in tests/python/test_judge_boards.py.
#include "harness/judge/board_problem.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "harness/judge/task.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(BoardProblem, IsKnownByItsName) {
  for (const char* path : {"a/p.py", "task.yml", "t.yaml", "d.json"}) EXPECT_TRUE(is_board_problem(path)) << path;
  for (const char* path : {"decode", "a.task", "json"}) EXPECT_FALSE(is_board_problem(path)) << path;
  EXPECT_EQ(name_of_task("boards/mla/task.yml"), "mla");
  EXPECT_EQ(name_of_task("boards/97_Attention.py"), "97_Attention");
  EXPECT_EQ(name_of_task("tasks/task.task"), "task");
}

TEST(BoardProblem, BecomesATaskThatSaysHowTheBoardCalls) {
  const Folder folder;
  std::ofstream(folder / "small.yml") << R"(tests:
  - {"heads": 2, "seq": 16, "dim": 8, "dtype": "float32", "seed": 1}
)";
  const Task task = read_task((folder / "small.yml").string());
  EXPECT_EQ(task.name, "small");
  EXPECT_EQ(task.call, "custom_kernel tuple q:bhld k:bhld v:bhld");
  EXPECT_FALSE(task.drawn.empty());
}

TEST(BoardProblem, WhatIsNoneIsToldInOneLine) {
  const Folder folder;
  std::ofstream(folder / "other.py") << "x = 1\n";
  const auto read = [&] { return read_task((folder / "other.py").string()); };
  const std::string told = message_of<UserError>(read);
  EXPECT_NE(told.find("there is no class Model"), std::string::npos) << told;
  EXPECT_EQ(told.find('\n'), std::string::npos) << told;
}

}  // namespace
}  // namespace attest

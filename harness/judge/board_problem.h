// Problems of boards as tasks: FlashInfer-Bench's definition .json, KernelBench's problem .py, GPU MODE's task .yml.
#pragma once

#include <filesystem>
#include <string>

namespace attest {

bool is_board_problem(const std::filesystem::path& path);

/// The text of a task, made of a problem by scripts/make_task.py in `interpreter`, or python3 where that is empty. With
/// a definition go the workloads in the file .jsonl of the same name beside it. Throws UserError with what a task can't
/// say.
std::string task_of_problem(const std::filesystem::path& path, const std::string& interpreter);

/// How a task is called: as its file, or as its folder where every file is called task.
std::string name_of_task(const std::filesystem::path& path);

}  // namespace attest

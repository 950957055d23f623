#include "harness/base/backend_source.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace attest {
namespace {

TEST(BackendSource, TellsObjectsOfPythonFromLibraries) {
  EXPECT_EQ(python_object("python:mine:attention"), "mine:attention");
  EXPECT_EQ(python_object("./python:mine.so"), "");
  EXPECT_EQ(python_object("libmine.so"), "");
}

TEST(BackendSource, PathsAreMadeAbsoluteAndModulesStay) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(seen_from_anywhere("libmine.so"), here + "/libmine.so");
  EXPECT_EQ(seen_from_anywhere("python:mine.kernels:attention"), "python:mine.kernels:attention");
  EXPECT_EQ(seen_from_anywhere("python:src/mine.py:Mine"), "python:" + here + "/src/mine.py:Mine");
}

TEST(BackendSource, TheCommandCanBeTypedAsItStands) {
  EXPECT_EQ(check_command(""), "attest check");
  EXPECT_EQ(check_command("./lib mine.so"), "attest check --plugin './lib mine.so'");
  EXPECT_EQ(check_command("python:mine:attention"), "python -m attest check --python mine:attention");
}

TEST(BackendSource, TitlesMoveNoCursor) {
  EXPECT_EQ(title_of("./libmine.so"), "plug-in ./libmine.so");
  EXPECT_EQ(title_of("python:mine:a\x1b[2J"), "Python object mine:a\\x1b[2J");
}

}  // namespace
}  // namespace attest

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
  EXPECT_EQ(command_with("check", ""), "attest check");
  EXPECT_EQ(command_with("fuzz", "./lib mine.so"), "attest fuzz --plugin './lib mine.so'");
  EXPECT_EQ(command_with("check", "python:mine:attention"), "python -m attest check --python mine:attention");
}

TEST(BackendSource, WhatIsSaidOfAnObjectGoesWithIt) {
  const std::string source = python_source("src/mine.py:Mine", {"--refuses", "grouped heads,strides"});
  EXPECT_EQ(python_object(source), "src/mine.py:Mine");
  EXPECT_EQ(command_with("check", source),
            "python -m attest check --python src/mine.py:Mine --refuses 'grouped heads,strides'");
  EXPECT_EQ(python_words(seen_from_anywhere(source)),
            (std::filesystem::current_path() / "src/mine.py").string() + ":Mine\n--refuses\ngrouped heads,strides");
  EXPECT_EQ(title_of(source), "Python object src/mine.py:Mine");
}

TEST(BackendSource, AnObjectThatLivesHereIsALineOfPython) {
  const std::string source = "here:attention, tensors='torch'";
  EXPECT_EQ(python_line("check", source, "dim=4 it's"), "attest.check(attention, 'dim=4 it\\'s', tensors='torch')");
  EXPECT_EQ(python_line("fuzz", "here:attention", ""), "attest.fuzz(attention)");
  EXPECT_EQ(python_line("list arithmetic", source, ""), "attest.statements(attention, tensors='torch')");
}

TEST(BackendSource, TitlesMoveNoCursor) {
  EXPECT_EQ(title_of("./libmine.so"), "plug-in ./libmine.so");
  EXPECT_EQ(title_of("python:mine:a\x1b[2J"), "Python object mine:a\\x1b[2J");
}

}  // namespace
}  // namespace attest

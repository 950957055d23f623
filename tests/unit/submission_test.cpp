#include "harness/judge/submission.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(Submission, FirstErrorOfACompiler) {
  EXPECT_EQ(first_error("/a/b/kernel.c: In function 'f':\n/a/b/kernel.c:3:1: error: unknown type name 'x'\nmore\n"),
            "kernel.c:3:1: error: unknown type name 'x'");
  EXPECT_EQ(first_error("/tmp/x.o: in function `f':\nx.c:(.text+0x5): undefined reference to `g'\n"),
            "x.c:(.text+0x5): undefined reference to `g'");
  EXPECT_EQ(first_error("cc: fatal trouble\n"), "cc: fatal trouble");
  EXPECT_EQ(first_error(""), "");
}

TEST(Submission, WhatIsNoFileOrNoKernelIsTheUsersFault) {
  EXPECT_THROW(take_submission("/nobody/kernel.c"), UserError);
  EXPECT_THROW(take_submission("/etc/hosts"), UserError);
}

TEST(Submission, AFileCalledLikeAnObjectOfAnotherIsItself) {
  const Folder folder;
  std::ofstream(folder / "other.c") << "int other;";
  // Without this file it is the object of another one, for which an interpreter is asked first.
  std::ofstream(folder / "other.py:kernel.c") << "int mine;";
  const Submission taken = take_submission((folder / "other.py:kernel.c").string());
  EXPECT_EQ(taken.files.main.front(), "other.py:kernel.c");
  EXPECT_EQ(taken.object, "");
}

}  // namespace
}  // namespace attest

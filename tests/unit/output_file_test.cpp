// A file is complete or not there; two writers, a full disk.
#include "harness/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(OutputFile, IsThereWhenFinished) {
  const Folder folder;
  OutputFile file(folder / "a");
  file.write("text");
  EXPECT_FALSE(fs::exists(folder / "a"));
  file.finish();
  EXPECT_EQ(text_of(folder / "a"), "text");
  EXPECT_TRUE(unfinished_parts(folder / "a").empty());
}

TEST(OutputFile, LeavesNothingUnlessToldTo) {
  const Folder folder;
  { OutputFile(folder / "a").write("text"); }
  EXPECT_TRUE(unfinished_parts(folder / "a").empty());
  {
    OutputFile file(folder / "a");
    file.write("text");
    file.keep_unfinished();
  }
  ASSERT_EQ(unfinished_parts(folder / "a").size(), 1u);
  EXPECT_EQ(text_of(unfinished_parts(folder / "a").front()), "text");
}

/// What was written first is given up when there is what stands for it, and not before.
TEST(OutputFile, CanBeBegunAnew) {
  const Folder folder;
  {
    OutputFile file(folder / "a");
    file.write("out of order");
    file.keep_unfinished();
    ASSERT_TRUE(file.can_begin_anew());
    file.begin_anew();
    file.write("in or");
    EXPECT_EQ(unfinished_parts(folder / "a").size(), 2u);
    EXPECT_THROW(OutputFile(folder / "a"), UserError) << "both are being written";
  }
  ASSERT_EQ(unfinished_parts(folder / "a").size(), 1u);
  EXPECT_EQ(text_of(unfinished_parts(folder / "a").front()), "out of order");
  {
    OutputFile file(folder / "a");
    file.write("out of order");
    file.begin_anew();
    file.write("in order");
    file.finish();
  }
  EXPECT_EQ(text_of(folder / "a"), "in order");
  EXPECT_EQ(unfinished_parts(folder / "a").size(), 1u) << "of the writer before";
}

TEST(OutputFile, TheSecondWriterIsRefusedWhileTheFirstLives) {
  const Folder folder;
  {
    OutputFile first(folder / "a");
    const std::string message = message_of<UserError>([&] { OutputFile(folder / "a"); });
    EXPECT_TRUE(message.starts_with((folder / "a").string())) << message;
    OutputFile beside(folder / "b");
    first.write("text");
    first.finish();
  }
  EXPECT_EQ(text_of(folder / "a"), "text");
  EXPECT_NO_THROW(OutputFile(folder / "a"));
}

TEST(OutputFile, AFolderThatAnotherProgramLocksIsNotWaitedForForEver) {
  const Folder folder;
  const fs::path left = (folder / "a").string() + ".part17";
  std::ofstream(left) << "of a killed run";
  const int lock = open((folder / "").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  alarm(60);  // it was
  const std::string message = message_of<UserError>([&] { OutputFile(folder / "a"); });
  EXPECT_TRUE(message.starts_with((folder / "a").string())) << message;
  EXPECT_NO_THROW(remove_abandoned_parts(folder / "a"));
  EXPECT_TRUE(fs::exists(left));
  close(lock);
  EXPECT_NO_THROW(OutputFile(folder / "a"));
  alarm(0);
}

TEST(OutputFile, OneFileMayBeWrittenInManyWays) {
  const Folder folder;
  fs::create_directories(folder / "in");
  fs::create_directory_symlink(folder / "in", folder / "link");
  EXPECT_TRUE(is_same_output(folder / "in/a", folder / "in/../in/./a"));
  EXPECT_TRUE(is_same_output(folder / "in/a", folder / "link/a"));
  EXPECT_TRUE(is_same_output("a", "./a"));
  EXPECT_FALSE(is_same_output(folder / "in/a", folder / "in/b"));
  EXPECT_FALSE(is_same_output(folder / "in/a", folder / "a"));
  EXPECT_FALSE(is_same_output(folder / "missing/a", folder / "a"));
  EXPECT_FALSE(is_same_output("/dev/null", "/dev/null"));
}

TEST(OutputFile, WhatAKilledWriterLeftStays) {
  const Folder folder;
  // The same process number as before, as in a container that is started again.
  std::ofstream(folder / "a.parts") << "somebody else's";
  EXPECT_TRUE(unfinished_parts(folder / "a").empty());
  const fs::path left = (folder / "a").string() + ".part" + std::to_string(getpid());
  std::ofstream(left) << "verdicts";
  OutputFile file(folder / "a");
  EXPECT_NE(file.part(), left);
  file.write("text");
  file.finish();
  EXPECT_EQ(text_of(left), "verdicts");
  EXPECT_EQ(text_of(folder / "a"), "text");
}

TEST(OutputFile, PartsThatNobodyWritesCanBeRemoved) {
  const Folder folder;
  const fs::path left = (folder / "a").string() + ".part17", other = (folder / "b").string() + ".part17";
  std::ofstream(left) << "of a killed run";
  std::ofstream(other) << "of another file";
  OutputFile file(folder / "a");
  remove_abandoned_parts(folder / "a");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_EQ(unfinished_parts(folder / "a"), std::vector<fs::path>{file.part()});
  remove_abandoned_parts(folder / "missing/a");
}

TEST(OutputFile, ADeviceIsWrittenToAndNotReplaced) {
  {
    OutputFile file("/dev/null");
    file.write("text");
    file.finish();
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  OutputFile full("/dev/full");
  full.write("text");
  const std::string message = message_of<OutputError>([&] { full.finish(); });
  EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
}

/// Whether finish() says what it should where files may not grow beyond 4 KiB: of a process of its own.
bool complains_beyond_the_limit(const fs::path& path) {
  const rlimit limit{4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);
  OutputFile file(path);
  file.keep_unfinished();
  file.write(std::string(3000, 'a') + "\n");
  file.write(std::string(3000, 'b') + "\n");
  try {
    file.finish();
  } catch (const OutputError& error) {
    return std::string(error.what()).find("File too large") != std::string::npos;
  }
  return false;
}

TEST(OutputFile, AFullDiskIsAnErrorAndWhatWasWrittenStays) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) _exit(complains_beyond_the_limit(folder / "a") ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(unfinished_parts(folder / "a").size(), 1u);
  EXPECT_EQ(text_of(unfinished_parts(folder / "a").front()).substr(0, 3001), std::string(3000, 'a') + "\n");
  EXPECT_FALSE(fs::exists(folder / "a"));
}

TEST(OutputFile, IsRefusedWhereNoneCanBe) {
  const Folder folder;
  EXPECT_THROW(OutputFile{"-"}, UserError);
  EXPECT_THROW(OutputFile{folder / "."}, UserError);
  EXPECT_THROW(OutputFile{folder / "missing" / "results.json"}, UserError);
  EXPECT_TRUE(fs::is_empty(folder / "."));
}

TEST(OutputFile, LeavesWhatWasThereWhenItIsNotFinished) {
  const Folder folder;
  std::ofstream(folder / "a") << "old";
  { OutputFile(folder / "a").write("half"); }
  EXPECT_EQ(text_of(folder / "a"), "old");
}

}  // namespace
}  // namespace attest

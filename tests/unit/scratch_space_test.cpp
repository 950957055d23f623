// How much is too much in a scratch folder, and what is removed with it. What fills one is in tests/exploits.
#include "harness/backends/isolation/scratch_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(ScratchSpace, CountsFilesAndBlocksAndNoHoles) {
  const Folder folder;
  EXPECT_FALSE(has_scratch_excess(folder / ""));
  std::ofstream(folder / "hole") << "x";
  fs::resize_file(folder / "hole", 4 * kMostScratchBytes);
  EXPECT_FALSE(has_scratch_excess(folder / "")) << "nothing is taken by it";
  for (std::uintmax_t n = 0; n <= kMostScratchFiles; ++n) std::ofstream(folder / std::to_string(n).c_str());
  EXPECT_TRUE(has_scratch_excess(folder / ""));
  EXPECT_FALSE(has_scratch_excess(folder / "nowhere"));
}

TEST(ScratchSpace, CountsOpenFilesThatHaveNoName) {
  const Folder folder;
  const int file = open((folder / "file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(posix_fallocate(file, 0, static_cast<off_t>(kMostScratchBytes) + 4096), 0);
  EXPECT_TRUE(has_scratch_excess(folder / "", getpid()));
  fs::remove(folder / "file");
  EXPECT_FALSE(has_scratch_excess(folder / ""));
  EXPECT_TRUE(has_scratch_excess(folder / "", getpid()));
  close(file);
  EXPECT_FALSE(has_scratch_excess(folder / "", getpid()));
}

TEST(ScratchSpace, RemovesWhatIsClosed) {
  const Folder folder;
  fs::create_directories(folder / "all/a/b/c");
  std::ofstream(folder / "all/a/b/c/file") << "text";
  fs::create_directory_symlink(folder / "all", folder / "all/a/link");
  std::ofstream(folder / "kept") << "text";
  fs::create_symlink(folder / "kept", folder / "all/a/b/kept");
  fs::permissions(folder / "all/a/b", fs::perms::none);
  remove_strangers_folder(folder / "all");
  EXPECT_FALSE(fs::exists(folder / "all"));
  EXPECT_TRUE(fs::exists(folder / "kept")) << "links are removed, and not what they lead to";
}

}  // namespace
}  // namespace attest

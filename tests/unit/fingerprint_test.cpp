// Files are the same by their contents.
#include "harness/base/fingerprint.h"

#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(Fingerprint, IsThatOfTheContents) {
  const Folder folder;
  std::ofstream(folder / "a") << "text";
  std::ofstream(folder / "b") << "text";
  std::ofstream(folder / "c") << "texT";
  EXPECT_EQ(fingerprint_of(folder / "a"), fingerprint_of(folder / "b"));
  EXPECT_NE(fingerprint_of(folder / "a"), fingerprint_of(folder / "c"));
  EXPECT_EQ(fingerprint_of(folder / "a").size(), 32u);
  Fingerprint pieces;
  pieces.add("te");
  pieces.add("xt");
  EXPECT_EQ(pieces.text(), fingerprint_of(folder / "a"));
  const std::vector<fs::path> ab = {folder / "a", folder / "c"}, ba = {folder / "c", folder / "b"};
  EXPECT_EQ(fingerprint_of(ab), fingerprint_of(ba)) << "order and names don't count";
  EXPECT_FALSE(loaded_libraries().empty());
}

}  // namespace
}  // namespace attest

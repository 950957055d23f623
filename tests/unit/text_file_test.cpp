// Text files that are not trusted.
#include "harness/base/text_file.h"

#include <sstream>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(TextFile, LinesThatAreTooLongComeBackEmpty) {
  std::istringstream file("one\n\n" + std::string(100, 'x') + "\nlast");
  std::vector<std::string> seen;
  for (Line line; read_line(file, line, 10);) seen.push_back(line.too_long ? "too long" : line.text);
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "", "too long", "last"}));
}

TEST(TextFile, SaysWhyItCanNotBeRead) {
  const Folder folder;
  std::ofstream(folder / "large") << std::string(100, 'x');
  EXPECT_EQ(message_of<UserError>([&] { open_text(folder / "large", 99); }),
            (folder / "large").string() + ": has 100 bytes; 99 are the limit");
  EXPECT_NO_THROW(open_text(folder / "large", 100));
  EXPECT_EQ(message_of<UserError>([&] { open_text(folder / "none", 99); }),
            (folder / "none").string() + ": can't be read: No such file or directory");
  EXPECT_EQ(message_of<UserError>([&] { open_text(fs::path("/tmp"), 99); }), "/tmp: is a folder, not a file");
}

}  // namespace
}  // namespace attest

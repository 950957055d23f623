// The public headers are those that harness/README.md lists, each with the same words.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace attest {
namespace {

namespace fs = std::filesystem;
const fs::path kHarness = fs::path(ATTEST_SOURCE_DIR) / "harness";

/// What each header of the list brings, by its installed name.
std::map<std::string, std::string> listed_headers() {
  std::map<std::string, std::string> headers;
  std::ifstream readme(kHarness / "README.md");
  for (std::string line; std::getline(readme, line);) {
    const std::string start = "| `harness/", middle = ".h` | ";
    const std::size_t name_end = line.find(middle);
    if (!line.starts_with(start) || name_end == std::string::npos || !line.ends_with(" |")) continue;
    const std::size_t text = name_end + middle.size();
    headers[line.substr(3, name_end - 3) + ".h"] = line.substr(text, line.size() - 2 - text);
  }
  return headers;
}

/// The same by the files: what each of public/ says of itself; it is installed in harness/.
std::map<std::string, std::string> present_headers() {
  std::map<std::string, std::string> headers;
  for (const auto& entry : fs::directory_iterator(kHarness / "public")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    std::string line;
    std::getline(file, line);
    const std::string start = "// Public: ";
    EXPECT_TRUE(line.starts_with(start) && line.ends_with(".")) << entry.path() << " starts with: " << line;
    headers["harness/" + entry.path().filename().string()] = line.substr(start.size(), line.size() - 1 - start.size());
  }
  return headers;
}

TEST(PublicHeaders, AreThoseThatTheReadmeLists) {
  auto listed = listed_headers();
  // The one that lies where it is used.
  EXPECT_EQ(listed.erase("harness/cli/cli.h"), 1u);
  EXPECT_TRUE(fs::exists(kHarness / "cli" / "cli.h"));
  EXPECT_GT(listed.size(), 20u);
  EXPECT_EQ(listed, present_headers());
}

/// They bring what others declare and declare nothing: a name has one place.
TEST(PublicHeaders, OnlyForward) {
  for (const auto& entry : fs::directory_iterator(kHarness / "public")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    std::string line;
    std::getline(file, line);
    int includes = 0;
    while (std::getline(file, line)) {
      EXPECT_TRUE(line.empty() || line == "#pragma once" || line.starts_with("#include \"harness/"))
          << entry.path() << ": " << line;
      includes += line.starts_with("#include");
    }
    EXPECT_GT(includes, 0) << entry.path();
  }
}

}  // namespace
}  // namespace attest

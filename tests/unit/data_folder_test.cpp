// Where the files lie that come with attest.
#include "harness/base/data_folder.h"

#include <gtest/gtest.h>

#include <utility>

#include "harness/base/installation.h"
#include "harness/base/machine.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

TEST(DataFolder, OfABuildLiesBelowIt) {
  for (const char* what : {"cases", "golden", "backends"}) {
    EXPECT_TRUE(fs::is_directory(data_folder(what))) << data_folder(what);
    EXPECT_EQ(data_folder(what), program_path().parent_path().parent_path() / "share" / "attest" / what);
  }
  EXPECT_TRUE(fs::is_regular_file(data_folder("cases") / "smoke.cases"));
  EXPECT_TRUE(fs::is_regular_file(data_folder("backends") / "field.json"));
}

TEST(DataFolder, OfAProgramThatWasToldIsThere) {
  const fs::path before = std::exchange(installed_data(), "/opt/elsewhere/share/attest");
  EXPECT_EQ(data_folder("cases"), "/opt/elsewhere/share/attest/cases");
  installed_data() = before;
}

TEST(DataFolder, ThatIsNotThereIsNamedAsIfInstalled) {
  const fs::path missing = data_folder("no such folder");
  EXPECT_FALSE(fs::exists(missing));
  EXPECT_TRUE(missing.is_absolute());
  EXPECT_EQ(missing, missing.lexically_normal());
}

}  // namespace
}  // namespace attest

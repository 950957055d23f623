#include "harness/backends/plugin/plugin_library.h"

#include <gtest/gtest.h>

#include <cfenv>

#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

const std::string kFolder = ATTEST_PLUGIN_FOLDER;

std::string complaint_about(const std::string& library) {
  return complaint([&] { load_plugin(library); });
}

TEST(PluginLibrary, SaysWhyOneCantBeUsed) {
  EXPECT_NE(complaint_about(kFolder + "/libnobody.so"), "");
  EXPECT_NE(complaint_about("/proc/self/cmdline"), "");
  EXPECT_NE(complaint_about(kFolder + "/libbroken_missing_symbol.so").find("nobody_has_this"), std::string::npos);
  EXPECT_EQ(complaint_about(kFolder + "/libbroken_entry_missing.so"),
            "it exports no attest_plugin_entry, so it is no plug-in of attest");
  EXPECT_NE(complaint_about(kFolder + "/libbroken_entry_null.so"), "");
}

/// As libraries built with -ffast-math do: it would change the results of everyone after it.
TEST(PluginLibrary, LoadingOneChangesNoMode) {
  load_plugin(kFolder + "/libbroken_modes_in_constructor.so");
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(PluginLibrary, HasItsBackendsInOrder) {
  const auto plugin = load_plugin(kFolder + "/libfaulty_plugin.so");
  const std::vector<std::string> names = backends_of(*plugin);
  ASSERT_GT(names.size(), 60u);
  EXPECT_EQ(names.front(), "correct");
  EXPECT_EQ(load_plugin(kFolder + "/libfaulty_plugin.so"), plugin) << "loaded once";
  const auto backend = make_plugin_backend(plugin, "missing_scale", {1, ""});
  EXPECT_EQ(backend->identity().name, "missing_scale");
  EXPECT_EQ(backend->identity().plugin, kFolder + "/libfaulty_plugin.so");
  EXPECT_THROW(make_plugin_backend(plugin, "nobody", {1, ""}), BackendUnavailable);
}

}  // namespace
}  // namespace attest

#include "harness/backends/plugin/plugin_table.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

/// A table that keeps the rules, to be broken one at a time. Its functions are never called.
struct Right {
  attest_backend backend{};
  std::vector<const attest_backend*> pointers;
  attest_plugin plugin{};

  Right() {
    backend.size = sizeof backend;
    backend.name = "mine";
    backend.identity = [](void*, attest_identity*, attest_text*) { return 0; };
    backend.refuse = [](void*, const attest_call*, attest_text*) { return 0; };
    backend.arithmetic = [](void*, const attest_call*, attest_arithmetic*, attest_text*) { return 0; };
    backend.prepare = [](void*, const attest_call*, void**, attest_text*) { return 0; };
    backend.drop = [](void*) {};
    backend.upload = [](void*, const attest_tensors*, attest_text*) { return 0; };
    backend.run = [](void*, attest_text*) { return 0; };
    backend.download = [](void*, const attest_tensors*, attest_text*) { return 0; };
    pointers = {&backend};
    plugin = ATTEST_PLUGIN_TABLE(pointers.data(), 1);
  }
};

std::string complaint_about(const Right& table) {
  return complaint([&] { read_plugin_table(&table.plugin); });
}

TEST(PluginTable, TakesOneThatKeepsTheRules) {
  const Right right;
  const PluginTable table = read_plugin_table(&right.plugin);
  ASSERT_EQ(table.backends.size(), 1u);
  EXPECT_STREQ(table.backends[0].name, "mine");
  EXPECT_EQ(table.originals[0], &right.backend);
}

struct Broken {
  void (*change)(Right&);
  const char* complaint;
};

const Broken kBroken[] = {
    {[](Right& t) { t.plugin.abi = 1; }, "it speaks version 1 of the interface, this attest 2: build it with this"},
    {[](Right& t) { t.plugin.size = 8; }, "its attest_plugin has 8 bytes"},
    {[](Right& t) { t.plugin.tensors_size = 0; }, "its attest_tensors has 0 bytes where 40 or more are expected"},
    {[](Right& t) { t.plugin.call_size = UINT64_MAX; }, "its attest_call has"},
    {[](Right& t) { t.plugin.tensor_size += 8; }, "its attest_tensor has 56 bytes where 48 are expected"},
    {[](Right& t) { t.plugin.known_features = nullptr; }, "its known_features are no list of words"},
    {[](Right& t) {
       static const char* const words[] = {"dtype=f32", nullptr};
       t.plugin.known_features = words;
       t.plugin.known_feature_count = 2;
     },
     "its known_features are no list of words"},
    {[](Right& t) { t.plugin.backend_count = 0; }, "it has no backend"},
    {[](Right& t) { t.plugin.backends = nullptr; }, "it has no backend"},
    {[](Right& t) { t.plugin.backend_count = 1u << 31; }, "4096 is the most"},
    {[](Right& t) { t.pointers[0] = nullptr; }, "its backend 1 is NULL"},
    {[](Right& t) { t.backend.size = 64; }, "its backend 1 has 64 bytes, and attest_plugin says 136"},
    {[](Right& t) { t.backend.name = nullptr; }, "its backend 1 has no name"},
    {[](Right& t) { t.backend.name = "reference"; }, "may not be called \"reference\""},
    {[](Right& t) {
       t.pointers.push_back(t.pointers[0]);
       t.plugin.backends = t.pointers.data();
       t.plugin.backend_count = 2;
     },
     "two of its backends are called \"mine\""},
    {[](Right& t) { t.backend.identity = nullptr; }, "backend \"mine\" has no `identity`"},
    {[](Right& t) { t.backend.refuse = nullptr; }, "backend \"mine\" has no `refuse`"},
    {[](Right& t) { t.backend.arithmetic = nullptr; }, "backend \"mine\" has no `arithmetic`"},
    {[](Right& t) { t.backend.prepare = nullptr; }, "backend \"mine\" has no `prepare`"},
    {[](Right& t) { t.backend.drop = nullptr; }, "backend \"mine\" has no `drop`"},
    {[](Right& t) { t.backend.upload = nullptr; }, "backend \"mine\" has no `upload`"},
    {[](Right& t) { t.backend.run = nullptr; }, "backend \"mine\" has no `run`"},
    {[](Right& t) { t.backend.download = nullptr; }, "backend \"mine\" has no `download`"},
    {[](Right& t) { t.backend.destroy = [](void*) {}; }, "has `destroy` without `create`"},
};

TEST(PluginTable, NamesTheRuleThatIsBroken) {
  EXPECT_THROW(read_plugin_table(nullptr), UserError);
  for (const Broken& broken : kBroken) {
    Right table;
    broken.change(table);
    EXPECT_NE(complaint_about(table).find(broken.complaint), std::string::npos) << complaint_about(table);
  }
}

TEST(PluginTable, NamesAreNames) {
  const std::string longest(65, 'a');
  for (const char* name : {"", "Mine", "1st", "a b", "a-b", "a\n", "\x1b[2J", "../a", longest.c_str()}) {
    Right table;
    table.backend.name = name;
    const std::string told = complaint_about(table);
    EXPECT_NE(told.find("a name is [a-z][a-z0-9_]*, 64 characters at most"), std::string::npos) << told;
  }
}

/// A plug-in of a younger header has more behind what this host knows; one of an older header has less.
TEST(PluginTable, SizesMayGrow) {
  Right t;
  struct Younger {
    attest_backend known;
    void* more[4];
  } younger{t.backend, {}};
  younger.known.size = sizeof younger;
  t.plugin.backend_size = sizeof younger;
  t.plugin.call_size += 128;
  t.plugin.size += 64;
  t.pointers[0] = &younger.known;
  EXPECT_EQ(read_plugin_table(&t.plugin).backends.size(), 1u);
}

}  // namespace
}  // namespace attest

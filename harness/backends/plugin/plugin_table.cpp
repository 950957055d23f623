#include "harness/backends/plugin/plugin_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

constexpr std::size_t kMaxBackends = 4096, kMaxFeatures = 4096;

// What the first release of the interface had. When a member is appended, its number stays here as it was.
struct StructSize {
  const char* name;
  std::uint64_t attest_plugin::*stated;
  std::uint64_t first_release;
};
constexpr StructSize kSizes[] = {{"attest_backend", &attest_plugin::backend_size, 128},
                                 {"attest_call", &attest_plugin::call_size, 352},
                                 {"attest_tensors", &attest_plugin::tensors_size, 40},
                                 {"attest_tensor", &attest_plugin::tensor_size, 48},
                                 {"attest_context", &attest_plugin::context_size, 24},
                                 {"attest_identity", &attest_plugin::identity_size, 32},
                                 {"attest_arithmetic", &attest_plugin::arithmetic_size, 120},
                                 {"attest_conventions", &attest_plugin::conventions_size, 88},
                                 {"attest_text", &attest_plugin::text_size, 24}};
constexpr std::uint64_t kPluginSize = 112, kLargest = 1 << 20;
static_assert(sizeof(attest_plugin) == kPluginSize && sizeof(attest_backend) == 136 && sizeof(attest_call) == 512 &&
              sizeof(attest_tensors) == 40 && sizeof(attest_tensor) == 48 && sizeof(attest_context) == 24 &&
              sizeof(attest_identity) == 32 && sizeof(attest_arithmetic) == 464 && sizeof(attest_conventions) == 96 &&
              sizeof(attest_text) == 24);

[[noreturn]] void fail(const std::string& what) { throw UserError(what); }

void check_sizes(const attest_plugin& plugin) {
  for (const StructSize& one : kSizes) {
    const std::uint64_t stated = plugin.*one.stated;
    const bool fixed = one.stated == &attest_plugin::tensor_size;  // DLPack's
    if (stated < one.first_release || stated > kLargest || (fixed && stated != one.first_release)) {
      fail(
          fmt::format("its {} has {} bytes where {} {} expected: build it with attest_plugin.h, and use "
                      "ATTEST_PLUGIN_TABLE",
                      one.name, stated, one.first_release, fixed ? "are" : "or more are"));
    }
  }
}

void check_functions(const attest_backend& backend) {
  const auto needed = [&](bool is_there, const char* function) {
    if (!is_there) fail(fmt::format("backend \"{}\" has no `{}`", backend.name, function));
  };
  needed(backend.identity, "identity");
  needed(backend.refuse, "refuse");
  needed(backend.arithmetic, "arithmetic");
  needed(backend.prepare, "prepare");
  needed(backend.drop, "drop");
  needed(backend.upload, "upload");
  needed(backend.run, "run");
  needed(backend.download, "download");
  if (!backend.create != !backend.destroy) {
    fail(fmt::format("backend \"{}\" has `{}` without `{}`", backend.name, backend.create ? "create" : "destroy",
                     backend.create ? "destroy" : "create"));
  }
}

void check_name(const PluginTable& table, const char* name, std::size_t number) {
  if (!name) fail(fmt::format("its backend {} has no name", number + 1));
  const std::string_view text(name, strnlen(name, kMostOfName + 1));
  if (!is_backend_name(text)) {
    fail(fmt::format("its backend {} is called \"{}\": a name is [a-z][a-z0-9_]*, {} characters at most", number + 1,
                     printable_line(std::string(text)), kMostOfName));
  }
  if (text == "reference") fail("a backend may not be called \"reference\": that is what all are held against");
  for (const attest_backend& other : table.backends) {
    if (text == other.name) fail(fmt::format("two of its backends are called \"{}\"", text));
  }
}

}  // namespace

PluginTable read_plugin_table(const attest_plugin* exported) {
  PluginTable table;
  if (!exported)
    fail(fmt::format("it doesn't speak version {} of the interface: build it with this attest's attest_plugin.h",
                     ATTEST_PLUGIN_ABI));
  // Only the first two members are where they are in every version.
  if (exported->abi != ATTEST_PLUGIN_ABI) {
    fail(fmt::format(
        "it speaks version {} of the interface, this attest {}: build it with this attest's attest_plugin.h",
        exported->abi, ATTEST_PLUGIN_ABI));
  }
  if (exported->size < kPluginSize || exported->size > kLargest) {
    fail(fmt::format("its attest_plugin has {} bytes where {} or more are expected", exported->size, kPluginSize));
  }
  std::memcpy(&table.plugin, exported, std::min<std::size_t>(sizeof table.plugin, exported->size));
  check_sizes(table.plugin);
  const auto* words = table.plugin.known_features;
  const std::uint64_t count = table.plugin.known_feature_count;
  if (!words || count > kMaxFeatures || std::count(words, words + count, nullptr) > 0)
    fail("its known_features are no list of words");
  if (table.plugin.backend_count == 0 || !table.plugin.backends) fail("it has no backend");
  if (table.plugin.backend_count > kMaxBackends) {
    fail(fmt::format("it states {} backends, {} is the most", table.plugin.backend_count, kMaxBackends));
  }
  for (std::size_t n = 0; n < table.plugin.backend_count; ++n) {
    const attest_backend* original = table.plugin.backends[n];
    if (!original) fail(fmt::format("its backend {} is NULL", n + 1));
    if (original->size != table.plugin.backend_size) {
      fail(fmt::format("its backend {} has {} bytes, and attest_plugin says {}", n + 1, original->size,
                       table.plugin.backend_size));
    }
    attest_backend copy{};
    std::memcpy(&copy, original, std::min<std::size_t>(sizeof copy, original->size));
    check_name(table, copy.name, n);
    check_functions(copy);
    table.backends.push_back(copy);
    table.originals.push_back(original);
  }
  return table;
}

}  // namespace attest

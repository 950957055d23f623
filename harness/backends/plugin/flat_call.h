// A call as plug-ins are told it: the struct of backends/plugin/attest/attest_plugin.h with what its pointers lead to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/plugin/attest/attest_plugin.h"
#include "harness/backends/plugin/sized.h"
#include "reference/call/call.h"

namespace attest {

/// Whether the interface has a member, or a word, for the option with this key. Tensors are told by their names.
bool has_plugin_member(std::string_view key);

/// The key of an option of the call that the interface has no member for; nullopt when it carries the call whole.
std::optional<std::string> unsupported_option(const Call& call);

/// Lives as long as its pointers are used.
class FlatCall {
 public:
  /// `call_size`: of attest_call as the plug-in knows it.
  FlatCall(const Call& call, std::uint64_t call_size);
  FlatCall(const FlatCall&) = delete;
  FlatCall& operator=(const FlatCall&) = delete;

  const attest_call* get() const { return flat_.get(); }

 private:
  const Call call_;
  const std::string line_;
  const std::vector<std::string> words_;
  std::vector<const char*> features_;
  std::vector<attest_placement> placements_;
  Sized<attest_call> flat_;
};

}  // namespace attest

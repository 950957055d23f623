// A backend of a plug-in behind attest's own contract: calls, tensors and errors carried over, and every answer held
// against the interface's rules.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/side_by_side.h"
#include "harness/backends/plugin/plugin_table.h"

namespace attest {

/// An answer that breaks a rule is a BackendError, or BackendUnavailable while the backend is made, whose sentence says
/// so: "breaks the plug-in interface: ...".
class PluginBackend : public Backend, public SideBySide {
 public:
  /// `index`: which of the plug-in's. Throws BackendUnavailable.
  PluginBackend(std::shared_ptr<const PluginTable> plugin, std::size_t index, const Context& context);
  ~PluginBackend() override;
  PluginBackend(const PluginBackend&) = delete;
  PluginBackend& operator=(const PluginBackend&) = delete;

  Identity identity() const override { return identity_; }
  int contract() const override { return contract_; }
  bool runs_side_by_side() const override { return side_by_side_; }
  /// Of a call that the plug-in's own header doesn't know, or that the interface can't tell, on its behalf.
  std::optional<Refusal> refuse(const Call& call) const override;
  Arithmetic arithmetic(const Call& call) const override;
  Conventions conventions() const override { return conventions_; }
  std::unique_ptr<Plan> prepare(const Call& call) override;

 private:
  const attest_plugin& sizes() const { return plugin_->plugin; }
  void read_identity();
  void read_conventions();

  std::shared_ptr<const PluginTable> plugin_;
  const attest_backend& functions_;
  void* instance_ = nullptr;
  Identity identity_;
  int contract_ = 0;
  bool side_by_side_ = false;
  Conventions conventions_;
};

}  // namespace attest

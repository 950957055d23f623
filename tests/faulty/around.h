// Backends and plans that do what another does: for those that are wrong in one thing, or that watch.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/registry.h"

namespace attest::faulty {

class PlanAround : public Plan {
 public:
  explicit PlanAround(std::unique_ptr<Plan> inner) : inner_(std::move(inner)) {}
  void upload(const Inputs& inputs) override { inner_->upload(inputs); }
  void run() override { inner_->run(); }
  void download(const Outputs& outputs) override { inner_->download(outputs); }

 protected:
  std::unique_ptr<Plan> inner_;
};

class BackendAround : public Backend {
 public:
  BackendAround(Identity identity, std::unique_ptr<Backend> inner)
      : inner_(std::move(inner)), identity_(std::move(identity)) {}
  /// Under its own name.
  explicit BackendAround(std::unique_ptr<Backend> inner) : inner_(std::move(inner)), identity_(inner_->identity()) {}

  Identity identity() const override { return identity_; }
  int contract() const override { return inner_->contract(); }
  std::optional<Refusal> refuse(const Call& call) const override { return inner_->refuse(call); }
  Arithmetic arithmetic(const Call& call) const override { return inner_->arithmetic(call); }
  Conventions conventions() const override { return inner_->conventions(); }
  std::unique_ptr<Plan> prepare(const Call& call) override { return inner_->prepare(call); }

 protected:
  std::unique_ptr<Backend> inner_;

 private:
  Identity identity_;
};

/// A backend of the registry, made for one thread. Throws BackendUnavailable.
inline std::unique_ptr<Backend> make_named(std::span<const BackendEntry> registry, std::string_view name) {
  for (const BackendEntry& entry : registry) {
    if (entry.name == name && entry.make) return entry.make({1, ""});
  }
  throw BackendUnavailable(std::string(name) + " was not built");
}
inline std::unique_ptr<Backend> make_example() { return make_named(registered_backends(), "example"); }

/// A registry of all that `Class` can be, by the names of an enumeration's values in their order.
template <class Class, class Kind>
std::vector<BackendEntry> entries_of(const auto& rows) {
  std::vector<BackendEntry> entries;
  for (const auto& row : rows) {
    const auto kind = static_cast<Kind>(entries.size());
    entries.push_back(
        {row.name,
         [kind](const Context& context) -> std::unique_ptr<Backend> { return std::make_unique<Class>(kind, context); },
         ""});
  }
  return entries;
}

}  // namespace attest::faulty

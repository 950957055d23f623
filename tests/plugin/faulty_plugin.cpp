// Every deliberately wrong backend of the tree and every cheat of the benchmark, from outside: one plug-in with all.
#include <attest/attest_plugin.hpp>
#include <vector>

#include "backends/registry.h"
#include "tests/faulty/cheats/cheats.h"
#include "tests/faulty/faulty.h"

namespace attest {

std::unique_ptr<Backend> make_backend_example(const Context&);

/// What the wrong ones are made of.
std::span<const BackendEntry> registered_backends() {
  static const BackendEntry entries[] = {{"example", make_backend_example, ""}};
  return entries;
}

namespace {

std::span<const BackendEntry> all() {
  static const std::vector<BackendEntry> list = [] {
    const auto wrong = faulty::faulty_backends(), cheats = faulty::cheating_backends();
    std::vector<BackendEntry> entries(wrong.begin(), wrong.end());
    entries.insert(entries.end(), cheats.begin(), cheats.end());
    entries.push_back({"example_again",
                       [](const Context& context) -> std::unique_ptr<Backend> {
                         struct Renamed : Backend {
                           std::unique_ptr<Backend> own;
                           explicit Renamed(std::unique_ptr<Backend> backend) : own(std::move(backend)) {}
                           Identity identity() const override { return {"example_again", "example", "CPU"}; }
                           int contract() const override { return own->contract(); }
                           std::optional<Refusal> refuse(const Call& call) const override { return own->refuse(call); }
                           Arithmetic arithmetic(const Call& call) const override { return own->arithmetic(call); }
                           std::unique_ptr<Plan> prepare(const Call& call) override { return own->prepare(call); }
                         };
                         return std::make_unique<Renamed>(make_backend_example(context));
                       },
                       ""});
    return entries;
  }();
  return list;
}

}  // namespace
}  // namespace attest

ATTEST_PLUGIN_BACKENDS(attest::all())

// Every deliberately wrong backend of the tree and every cheat of the benchmark, from outside: one plug-in with all.
#include <time.h>

#include <attest/attest_plugin.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
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

/// A right backend by another name.
struct Renamed : Backend {
  std::string name;
  std::unique_ptr<Backend> own;
  Renamed(std::string its_name, const Context& context)
      : name(std::move(its_name)), own(make_backend_example(context)) {}
  Identity identity() const override { return {name, "example", "CPU"}; }
  int contract() const override { return own->contract(); }
  std::optional<Refusal> refuse(const Call& call) const override { return own->refuse(call); }
  Arithmetic arithmetic(const Call& call) const override { return own->arithmetic(call); }
  std::unique_ptr<Plan> prepare(const Call& call) override { return own->prepare(call); }
};

/// With a thread that looks for work in a loop when it is new, and then rests.
struct WithPool : Renamed {
  using Renamed::Renamed;
  std::jthread pool{[] {
    for (timespec took{}; took.tv_sec == 0 && took.tv_nsec < 300'000'000;)
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &took);
  }};
};

std::span<const BackendEntry> all() {
  static const std::vector<BackendEntry> list = [] {
    const auto wrong = faulty::faulty_backends(), cheats = faulty::cheating_backends();
    std::vector<BackendEntry> entries(wrong.begin(), wrong.end());
    entries.insert(entries.end(), cheats.begin(), cheats.end());
    entries.push_back({"example_again",
                       [](const Context& context) -> std::unique_ptr<Backend> {
                         return std::make_unique<Renamed>("example_again", context);
                       },
                       ""});
    entries.push_back({"example_with_pool",
                       [](const Context& context) -> std::unique_ptr<Backend> {
                         return std::make_unique<WithPool>("example_with_pool", context);
                       },
                       ""});
    return entries;
  }();
  return list;
}

}  // namespace
}  // namespace attest

ATTEST_PLUGIN_BACKENDS(attest::all())

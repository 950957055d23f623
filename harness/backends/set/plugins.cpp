#include "harness/backends/set/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/backends/isolation/messages.h"
#include "harness/backends/isolation/worker_process.h"
#include "harness/base/backend_source.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw UserError(title_of(source) + ": " + what);
}

/// Which backends it has, asked of a process that loads it.
std::vector<std::string> names_in(const std::string& path, const IsolationOptions& limits) {
  std::error_code error;
  if (python_object(path).empty() && !std::filesystem::exists(path, error)) fail(path, "there is no such file");
  WorkerProcess worker("", {}, limits, path);
  Json hello;
  Received received{};
  try {
    received = worker.greeting(hello, limits.limit);
  } catch (const BackendUnavailable& unavailable) {
    fail(path, unavailable.what());
  }
  switch (received) {
    case Received::message: break;
    case Received::timeout:
      worker.end();
      fail(path, fmt::format("loading it took more than {:g} s; --timeout allows more",
                             static_cast<double>(limits.limit.count()) / 1000));
    case Received::closed: {
      worker.await();
      const std::string excess = worker.memory_excess();
      fail(path, "loading it failed: " + (excess.empty() ? worker.text_of_end() : "killed: out of memory: " + excess));
    }
  }
  try {
    if (hello.contains("unavailable"))
      fail(path, read_message([&] { return hello.at("unavailable").get<std::string>(); }));
    auto names = read_message([&] { return hello.at("backends").get<std::vector<std::string>>(); });
    if (std::ranges::all_of(names, is_backend_name)) return names;
  } catch (const BadMessage&) {  // told as no answer
  }
  fail(path, "it gave no answer");
}

}  // namespace

Plugins::Plugins(const std::vector<std::string>& paths, std::span<const BackendEntry> registry,
                 const IsolationOptions& limits)
    : entries_(registry.begin(), registry.end()) {
  for (const std::string& path : paths) {
    const std::string& kept = texts_.emplace_back(path);
    for (const std::string& name : names_in(path, limits)) {
      const auto same =
          std::find_if(entries_.begin(), entries_.end(), [&](const BackendEntry& e) { return e.name == name; });
      if (same != entries_.end()) {
        fail(path,
             "its backend \"" + name + "\" is called as one of " +
                 (same->plugin.empty() ? std::string("attest's own") : printable_line(std::string(same->plugin))) +
                 "; give it another name");
      }
      entries_.push_back({texts_.emplace_back(name), nullptr, "", kept});
      names_.push_back(name);
    }
  }
}

}  // namespace attest

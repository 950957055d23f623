#include "harness/isolation/plugins.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "harness/base/backend_source.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/isolation/isolation_options.h"
#include "harness/isolation/messages.h"
#include "harness/isolation/worker_process.h"

namespace attest {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw UserError(title_of(source) + ": " + what);
}

/// Which backends it has, asked of a process that loads it.
std::vector<std::string> names_in(const std::string& path) {
  std::error_code error;
  if (python_object(path).empty() && !std::filesystem::exists(path, error)) fail(path, "there is no such file");
  WorkerProcess worker("", {}, 0, path);
  Json hello;
  switch (receive_message(worker.socket(), hello, IsolationOptions{}.limit)) {
    case Received::message: break;
    case Received::timeout: worker.end(); fail(path, "loading it took too long");
    case Received::closed: fail(path, "loading it failed: " + text_of_end(worker.await()));
  }
  if (!hello.contains("backends")) fail(path, hello.value("unavailable", "it gave no answer"));
  return hello.at("backends").get<std::vector<std::string>>();
}

}  // namespace

Plugins::Plugins(const std::vector<std::string>& paths, std::span<const BackendEntry> registry)
    : entries_(registry.begin(), registry.end()) {
  for (const std::string& path : paths) {
    const std::string& kept = texts_.emplace_back(path);
    for (const std::string& name : names_in(path)) {
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

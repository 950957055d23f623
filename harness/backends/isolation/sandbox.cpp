#include "harness/backends/isolation/sandbox.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>

#include "harness/backends/isolation/scratch_space.h"
#include "harness/base/machine.h"

namespace attest {
namespace {

std::string confine(SandboxLayer layer, const SandboxRequest& request) {
  switch (layer) {
    case SandboxLayer::landlock: return confine_files(request);
    case SandboxLayer::seccomp: return confine_system_calls(request);
    case SandboxLayer::limits: return confine_resources(request);
    case SandboxLayer::capabilities: return drop_capabilities();
    case SandboxLayer::scratch: return confine_scratch(request);
  }
  return "unknown";
}

}  // namespace

bool has_one_thread() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks)) == 1;
}

std::string confine_resources(const SandboxRequest& request) {
  constexpr rlim_t kMiB = rlim_t{1} << 20, kGiB = rlim_t{1} << 30;
  // Interpreters and drivers reserve far more addresses than they touch; this ends what begins threads without end.
  // Nobody watches the memory of what a program starts, and compilers touch most of what they reserve.
  const rlim_t addresses =
      request.processes ? 3 * kGiB : 16 * kGiB + 2 * static_cast<rlim_t>(this_machine().memory_gib) * kGiB;
  const std::pair<__rlimit_resource_t, rlim_t> limits[] = {
      {RLIMIT_CORE, 0},     {RLIMIT_FSIZE, kMostScratchBytes}, {RLIMIT_NOFILE, 512},  {RLIMIT_NPROC, kMostThreads},
      {RLIMIT_MSGQUEUE, 0}, {RLIMIT_MEMLOCK, 64 * kMiB},       {RLIMIT_AS, addresses}};
  for (const auto& [what, most] : limits) {
    rlimit now{};
    if (getrlimit(what, &now) != 0) return std::strerror(errno);
    const rlim_t value = std::min(most, now.rlim_max);
    const rlimit lower{std::min(value, now.rlim_cur), value};
    if (setrlimit(what, &lower) != 0) return std::strerror(errno);
  }
  return "";
}

std::string drop_capabilities() {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Without the right to lower the bounding set there are no capabilities to lower it by.
  for (unsigned long number = 0; number < 64; ++number) prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return syscall(SYS_capset, &header, none) == 0 ? "" : std::strerror(errno);
}

std::vector<SandboxLayerState> enter_sandbox(const SandboxRequest& request) {
  // Landlock holds for a thread and those that it begins: one that is there already would stay free.
  const bool alone = request.executes || has_one_thread();
  const bool locked = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  // Landlock lets nobody mount. Capabilities are dropped before the filter may refuse it, and files are opened for
  // rules before all others.
  std::vector<SandboxLayerState> states;
  for (const SandboxLayer layer : {SandboxLayer::scratch, SandboxLayer::limits, SandboxLayer::landlock,
                                   SandboxLayer::capabilities, SandboxLayer::seccomp}) {
    // The folder that is the working one from here on is that in a file system of its own.
    std::error_code error;
    if (layer != SandboxLayer::scratch && !request.scratch.empty())
      std::filesystem::current_path(request.scratch, error);
    if (!request.layers.contains(layer)) {
      states.push_back({layer, "not asked for"});
    } else if (!locked) {
      states.push_back({layer, "the process can't give up new privileges"});
    } else if (layer == SandboxLayer::landlock && !alone) {
      states.push_back({layer, "the process has other threads already"});
    } else {
      states.push_back({layer, confine(layer, request)});
    }
  }
  return states;
}

std::string vital_layer_missing(const std::vector<SandboxLayerState>& layers, const SandboxOptions& wanted) {
  for (const SandboxLayerState& one : layers) {
    const bool vital = one.layer == SandboxLayer::landlock || one.layer == SandboxLayer::seccomp;
    if (!vital || one.missing.empty() || wanted.trust || !wanted.layers.contains(one.layer)) continue;
    return "no sandbox without " + std::string(name_of(one.layer)) + ": " + one.missing +
           "; --trust runs it all the same";
  }
  return "";
}

std::string layers_text(const std::set<SandboxLayer>& layers) {
  std::string text;
  for (const SandboxLayer layer : layers) text += std::string(name_of(layer)) + ",";
  return text;
}

std::set<SandboxLayer> layers_from_text(const std::string& text) {
  std::set<SandboxLayer> layers;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    if (const auto layer = value_named<SandboxLayer>(name)) layers.insert(*layer);
  }
  return layers;
}

std::string sandbox_text(const std::vector<SandboxLayerState>& layers) {
  std::string there, missing;
  for (const SandboxLayerState& one : layers) {
    std::string& list = one.missing.empty() ? there : missing;
    list += (list.empty() ? "" : ", ") + std::string(name_of(one.layer));
    if (one.missing.empty()) continue;
    list += " (" + one.missing + (one.layer == SandboxLayer::scratch ? "; its size is watched instead)" : ")");
  }
  if (there.empty()) there = "none";
  return missing.empty() ? there : there + "; missing: " + missing;
}

}  // namespace attest

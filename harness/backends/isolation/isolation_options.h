// How far a backend in a process of its own may go.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "reference/base/names.h"
#include "reference/call/call.h"

namespace attest {

struct Arithmetic;
struct Conventions;

/// What keeps a worker process in its place (sandbox.h says how).
enum class SandboxLayer : std::uint8_t { landlock, seccomp, limits, capabilities, scratch };
template <>
inline constexpr auto kNames<SandboxLayer> = name_table("landlock", "seccomp", "limits", "capabilities", "scratch");

/// Of workers that run code of strangers.
struct SandboxOptions {
  std::set<SandboxLayer> layers{SandboxLayer::landlock, SandboxLayer::seccomp, SandboxLayer::limits,
                                SandboxLayer::capabilities, SandboxLayer::scratch};
  bool trust = false;  ///< they run where Landlock or seccomp is missing, too
};

/// Which of the backends of a run have a process of their own.
enum class IsolatedBackends : std::uint8_t {
  all,
  foreign  ///< those of plug-ins and of Python; those of the program itself share its process
};

struct IsolationOptions {
  std::chrono::milliseconds limit{60'000};  ///< of one request about a small call: request_limit adds for large ones
  double memory_gib = 0;                    ///< beyond what a worker starts with; 0: a share of what is free
  std::optional<SandboxOptions> sandbox{};  ///< nothing: a worker has all rights of the user
  IsolatedBackends which = IsolatedBackends::all;
  /// Workers can't write to their inputs by any means, and these keep the memory of what was ever written. Always so
  /// in a sandbox.
  bool seals_inputs = false;
  /// Where not empty: called with each statement of a worker, by the name under which its backend was asked for; from
  /// whatever thread asked.
  std::function<void(const std::string& backend, const Call& call, const Arithmetic& stated)> hears_arithmetic{};
  std::function<void(const std::string& backend, const Conventions& stated)> hears_conventions{};
};

/// How long one request about this call may take. A limit that is generous to a small call is false alarm on millions
/// of heads or rows: 0.1 ms are added for each row of the output and 1 us for each pair of a row and a key, in whole
/// seconds, so that nothing is added to what is small.
std::chrono::milliseconds request_limit(const IsolationOptions& options, const Call& call);

}  // namespace attest

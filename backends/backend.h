// The whole contract between attest and an implementation of attention.
//
// The program creates a Backend once, for a number of threads and a device. The backend makes a Plan for each Call that
// it accepts; the plan owns everything the call needs. The harness calls upload, run and download. It may upload other
// data at the same addresses and run the plan again. Plans of one or several backends take turns. Two plans of a
// backend run at the same time only if the backend promises that this works (side_by_side.h).
//
// To add one, copy backends/example/ and read backends/README.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backends/conventions.h"
#include "backends/identity.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/base/names.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// Who refuses. In all cases but the first the program refuses on behalf of the backend, without calling it.
enum class RefusalCause : std::uint8_t {
  backend,
  younger_than_contract,  ///< an option came after the contract that the backend states
  younger_than_header,    ///< an option came after the header that the plug-in was built with
  no_plugin_member,       ///< the plug-in interface of this program can't carry an option
};

template <>
inline constexpr auto kNames<RefusalCause> = name_table("backend", "younger than its contract",
                                                        "younger than its attest_plugin.h",
                                                        "not in the plug-in interface");

/// The reason for which a backend does not support a call, as a sentence: "dim 96: the tile needs a multiple of 32".
struct Refusal {
  std::string reason;
  RefusalCause cause = RefusalCause::backend;
};

/// Thrown by any step of a backend that cannot go on. The verdict of the case becomes `fail` with this message.
class BackendError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by a backend's factory when this machine lacks what it needs (no device, no driver).
class BackendUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One prepared call. A plan owns its workspace. One thread at a time uses it, not always the one that created it.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Takes the inputs with their strides, and computes nothing. A backend on the host may keep the views. They stay
  /// valid until the next upload or the end of the plan; new data may be written over them just before that upload. A
  /// backend on a device copies them.
  virtual void upload(const Inputs& inputs) = 0;

  /// Computes the result, which is complete on return. This is timed, packing included. Compiles and allocates nothing.
  virtual void run() = 0;

  /// Writes out (B,Hq,Lq,Dv) and the other requested outputs, as lse (B,Hq,Lq,1), inside the views only. When called
  /// again, it writes the same bits.
  virtual void download(const Outputs& outputs) = 0;

  /// Bytes that this plan holds besides inputs and outputs.
  virtual std::size_t workspace_bytes() const { return 0; }

  /// Time of the last run by the device's own clock, where there is one.
  virtual std::optional<std::chrono::nanoseconds> device_time() const { return std::nullopt; }
};

struct Group;

/// The user's options for backends.
struct Context {
  int threads = 1;
  std::string device;            ///< part of a device's name; empty means the backend's choice
  const Group* group = nullptr;  ///< the ranks that run a case together (group.h); null: this process alone
};

/// A tuning parameter, such as the rows of a tile: it makes plans faster or slower.
struct Parameter {
  std::string name;                   ///< [a-z][a-z0-9_]*
  std::int64_t value = 0;             ///< in use for plans made from now on
  std::int64_t standard = 0;          ///< when nothing was chosen
  std::vector<std::int64_t> choices;  ///< include `value` and `standard`; they depend on the device
};

/// The tuning parameters of a backend on its device.
struct Tuning {
  int version = 0;  ///< of the parameters: choices stored for another version do not apply
  std::vector<Parameter> parameters;
};

/// The version of this contract. 1: a backend got the fills of a call as well. 2: it gets the call alone. 3: any tensor
/// may have strides, not only q, k, v, the mask and the output. 4: and a type of its own, not only the mask. 5: a
/// call may ask for gradients. 6: of linear attention, too. 7: a call may merge partial results.
/// 8: the calls of servers: packed linear attention. 9: more of them: lengths that are data, caches that a call appends
/// to, latent values, chosen keys, rotation and norm; and storage in 8 bits.
inline constexpr int kContractVersion = 9;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Identity identity() const = 0;

  /// The version of the contract that this backend was written for: write the number, not kContractVersion. The program
  /// refuses newer options on behalf of the backend (refusal.h).
  virtual int contract() const = 0;

  /// nullopt is a promise to honour every option of the call. Accepting and ignoring one is a failure.
  virtual std::optional<Refusal> refuse(const Call&) const { return std::nullopt; }

  /// How results for this call are rounded. The error bound is derived from it.
  virtual Arithmetic arithmetic(const Call& call) const = 0;

  virtual Conventions conventions() const { return {}; }

  /// The parameters that `attest tune` may choose; most backends have none. A choice changes neither refusals nor
  /// failures. If it changes rounding, arithmetic() follows.
  virtual Tuning tuning() const { return {}; }

  /// Sets one value for each parameter of tuning(), in that order, for plans that are created from now on.
  virtual void tune(const std::vector<std::int64_t>& /*values*/) {}

  /// Allocates and compiles. Throws BackendError. The plan may refer to the backend, not to the call. A call whose
  /// lengths are data has the largest ones alone (reference/call/launch.h): each run reads its own.
  virtual std::unique_ptr<Plan> prepare(const Call& call) = 0;
};

/// A refusal of linear attention, for `refuse` of backends that compute softmax attention only.
inline std::optional<Refusal> refuse_other_operators(const Call& call) {
  if (call.has_scores()) return std::nullopt;
  return Refusal{"op=" + std::string(name_of(call.op)) + ": softmax attention alone"};
}

/// One row of the registry. Either `make` is set, or `plugin`, or `unavailable` says why the backend was not built.
struct BackendEntry {
  std::string_view name;
  std::function<std::unique_ptr<Backend>(const Context&)> make;  ///< throws BackendUnavailable
  std::string_view unavailable;
  std::string_view plugin{};  ///< from outside of this program: the shared library, or what else the harness loads
};

}  // namespace attest

/// Makes `Class` known to the registry as the backend `name`. Stands once, at the end of the backend's source.
#define ATTEST_REGISTER_BACKEND(name, Class)                                                                        \
  namespace attest {                                                                                                \
  std::unique_ptr<Backend> make_backend_##name(const Context& context) { return std::make_unique<Class>(context); } \
  }

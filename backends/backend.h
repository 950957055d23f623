// The whole contract between attest and an implementation of attention.
//
// A Backend is made once for what the user asked (threads, device). For each Call that it accepts it makes a Plan,
// which owns everything the call needs. The harness walks: upload, run, download; it may upload other data, at the same
// places, and run the plan again, and it runs plans of several backends, or several of one, in turn, and two of one at
// once only where it promises that this is right (side_by_side.h).
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

/// Whose refusal it is. All but the first are the program's on behalf of a backend, which isn't asked.
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

/// Why a call is not for this backend, as a sentence for a person: "dim 96: the tile needs a multiple of 32".
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

/// One Call made ready. Owns its workspace. Used from one thread at a time, not always the one that made it.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Takes the inputs as they lie, strides and all, and computes nothing. A host backend keeps the views, which stay
  /// valid to the next upload, whose data may be written over them just before, or the plan's end; a device's copies.
  virtual void upload(const Inputs& inputs) = 0;

  /// The timed part. The result is complete on return. Compiles and allocates nothing; packing counts here.
  virtual void run() = 0;

  /// Writes out (B,Hq,Lq,Dv) and, when asked for, lse (B,Hq,Lq,1), inside the views only; once more, the same bits.
  virtual void download(const Outputs& outputs) = 0;

  /// Bytes that this plan holds besides inputs and outputs.
  virtual std::size_t workspace_bytes() const { return 0; }

  /// Time of the last run by the device's own clock, where there is one.
  virtual std::optional<std::chrono::nanoseconds> device_time() const { return std::nullopt; }
};

struct Group;

/// What the user asked for.
struct Context {
  int threads = 1;
  std::string device;            ///< part of a device's name; empty means the backend's choice
  const Group* group = nullptr;  ///< the ranks that run a case together (group.h); null: this process alone
};

/// A whole number that a backend is free to choose, as the rows of a tile: it makes its plans faster or slower.
struct Parameter {
  std::string name;                   ///< [a-z][a-z0-9_]*
  std::int64_t value = 0;             ///< in use for plans made from now on
  std::int64_t standard = 0;          ///< when nothing was chosen
  std::vector<std::int64_t> choices;  ///< both are among them; what suits one device need not be among another's
};

/// All that may be chosen for a backend on its device.
struct Tuning {
  int version = 0;  ///< of what the numbers mean: a choice made under another one is not taken over
  std::vector<Parameter> parameters;
};

/// Of this contract. 1: a backend was told the data of a call as well. 2: it is told the call alone. 3: any tensor may
/// have strides, not only q, k, v, the mask and the output.
inline constexpr int kContractVersion = 3;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Identity identity() const = 0;

  /// The version of the contract that this backend was written for, as a number of its own and not kContractVersion: an
  /// option that came later is refused on its behalf (refusal.h).
  virtual int contract() const = 0;

  /// nullopt is a promise to honour every option of the call. Accepting and ignoring one is a failure.
  virtual std::optional<Refusal> refuse(const Call&) const { return std::nullopt; }

  /// How results for this call are rounded. The error bound is derived from it.
  virtual Arithmetic arithmetic(const Call& call) const = 0;

  virtual Conventions conventions() const { return {}; }

  /// What `attest tune` may choose by measurement; nothing for most. No choice may change what is refused or what
  /// fails, and arithmetic() follows a choice that rounds otherwise.
  virtual Tuning tuning() const { return {}; }

  /// One value for each parameter of tuning(), in its order and among its choices; for plans made from now on.
  virtual void tune(const std::vector<std::int64_t>& /*values*/) {}

  /// Allocates and compiles. Throws BackendError. The plan may refer to the backend, not to the call.
  virtual std::unique_ptr<Plan> prepare(const Call& call) = 0;
};

/// For the `refuse` of a backend that does softmax attention alone.
inline std::optional<Refusal> refuse_other_operators(const Call& call) {
  if (call.op == Op::attention) return std::nullopt;
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

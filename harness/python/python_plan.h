// One call on a callable of Python, made ready.
//
// upload() makes the arrays and the keywords, and lets the object ready itself where it wants to; run() calls,
// download() looks at what came back and copies it. Between the host and the callable lies the call itself and nothing
// else.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "harness/python/added_scores.h"
#include "harness/python/arrays.h"
#include "harness/python/visible_pairs.h"
#include "harness/python/writable_cache.h"

namespace attest {

class PythonPlan : public Plan {
 public:
  /// `step`: an attest._options.Step. With the interpreter's lock. Throws what Python throws.
  PythonPlan(const nb::object& step, const Call& call);
  ~PythonPlan() override;
  PythonPlan(const PythonPlan&) = delete;
  PythonPlan& operator=(const PythonPlan&) = delete;

  void upload(const Inputs& inputs) override;
  /// The first few also throw BackendError where an input was changed.
  void run() override;
  /// Throws BackendError where the result isn't what was asked for: its type, shape, place, or a view of an input.
  void download(const Outputs& outputs) override;

  std::size_t workspace_bytes() const override { return workspace_; }
  /// Throws BackendError where what the object's clock says is no time.
  std::optional<std::chrono::nanoseconds> device_time() const override;

 private:
  /// An input where it lies on the host.
  struct Place {
    std::string name;
    const void* data;
    std::size_t bytes;
  };
  struct Wanted;  ///< an output

  /// Whether the callable takes what attest calls `name`.
  bool takes(std::string_view name) const;
  void bind(const Inputs& inputs);
  nb::object shown(const std::string& name, const Inputs& inputs) const;
  std::vector<Wanted> wanted(const Outputs& outputs) const;
  nb::object result_for(const std::string& name, std::size_t number) const;
  void hand_over(const nb::object& result, const Wanted& output) const;
  std::string fingerprint() const;
  bool unchanged_on_device() const;
  /// rethrow_for_verdict(); CaseFault where the device doesn't answer any more.
  [[noreturn]] void rethrow(const nanobind::python_error& error) const;

  Call call_;
  ArrayKind arrays_;
  nb::object function_, ready_, to_device_, unchanged_, from_device_, synchronize_, to_host_, device_time_;
  std::size_t workspace_ = 0;
  nb::dict constants_;
  std::vector<std::pair<std::string, std::string>> tensors_;  ///< attest's name and the callable's keyword
  std::vector<std::string> names_;                            ///< of outputs, in the order asked for
  std::vector<std::uint8_t> keep_;                            ///< dropout's decisions, where the callable wants them
  VisiblePairs visible_;                                      ///< likewise, what each query sees
  AddedScores added_;                                         ///< and what is added to its scores
  std::vector<double> zeros_;                                 ///< slopes of heads without batches
  std::vector<Place> places_;
  WritableCache cache_;  ///< k and v of a call that appends
  /// Arrays on the host and on the device: inputs, and those that the callable writes.
  std::vector<std::pair<nb::object, nb::object>> moved_, written_;
  nb::tuple arguments_;
  nb::dict keywords_;
  nb::object readied_;  ///< what ready_ made of them, called without arguments
  nb::object result_;
  std::string before_;  ///< fingerprint of the inputs
  int runs_ = 0;
};

}  // namespace attest

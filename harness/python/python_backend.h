// A backend that is an object of Python, behind attest's own contract.
//
// The object is an attest.Backend: harness/python/attest/_backend.py says which of its methods are called. Every step
// takes the interpreter's lock; whoever waits for a step holds none.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "backends/backend.h"

namespace attest {

/// What a dict of statements makes of the arithmetic that holds where nothing is stated. Throws UserError for a name
/// or value that there isn't. With the interpreter's lock.
Arithmetic arithmetic_from(const nanobind::dict& stated, const Call& call);

class PythonBackend : public Backend {
 public:
  /// `object`: an attest.Backend made for this context; `source` as in harness/base/backend_source.h. Throws
  /// BackendUnavailable where what it says of itself isn't what is wanted.
  PythonBackend(nanobind::object object, std::string source);
  ~PythonBackend() override;
  PythonBackend(const PythonBackend&) = delete;
  PythonBackend& operator=(const PythonBackend&) = delete;

  Identity identity() const override { return identity_; }
  int contract() const override { return contract_; }
  std::optional<Refusal> refuse(const Call& call) const override;
  Arithmetic arithmetic(const Call& call) const override;
  Conventions conventions() const override { return conventions_; }
  std::unique_ptr<Plan> prepare(const Call& call) override;

 private:
  void try_arithmetic() const;

  nanobind::object object_;
  Identity identity_;
  int contract_ = 0;
  Conventions conventions_;
};

}  // namespace attest

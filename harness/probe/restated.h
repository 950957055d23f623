// The answers of one backend under statements that it doesn't make.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "backends/backend.h"

namespace attest {

class Restated : public Backend {
 public:
  /// `own` outlives this; `restate` changes what it states of any call.
  Restated(Backend& own, std::function<void(Arithmetic&)> restate) : own_(own), restate_(std::move(restate)) {}
  Identity identity() const override { return own_.identity(); }
  int contract() const override { return own_.contract(); }
  std::optional<Refusal> refuse(const Call& call) const override { return own_.refuse(call); }
  Arithmetic arithmetic(const Call& call) const override {
    Arithmetic a = own_.arithmetic(call);
    restate_(a);
    return a;
  }
  std::unique_ptr<Plan> prepare(const Call& call) override { return own_.prepare(call); }

 private:
  Backend& own_;
  std::function<void(Arithmetic&)> restate_;
};

}  // namespace attest

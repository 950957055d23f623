// The example backend with two parameters that do nothing but take time, and one choice that makes its results wrong.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/faulty/around.h"

namespace attest {

class TunableBackend : public faulty::BackendAround {
 public:
  TunableBackend() : BackendAround({"tunable", "a library 1.0", "a device"}, faulty::make_example()) {}

  /// `wait`: microseconds that a run takes longer. `wrong`: 1 doubles the scale, and takes no time at all.
  static constexpr std::int64_t kWait = 2000;

  std::optional<Refusal> refuse(const Call& call) const override {
    return call.has_scores() ? std::nullopt : std::optional(Refusal{"softmax alone"});
  }
  Tuning tuning() const override {
    return {version, {{"wait", wait_, kWait, {0, 500, kWait, 4000}}, {"wrong", wrong_, 0, {0, 1}}}};
  }
  void tune(const std::vector<std::int64_t>& values) override {
    wait_ = values.at(0);
    wrong_ = values.at(1);
  }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    Call given = call;
    if (wrong_) given.scale = 2 * call.scale_value();
    return std::make_unique<SlowPlan>(inner_->prepare(given), wrong_ ? 0 : wait_);
  }

  int version = 1;

 private:
  class SlowPlan : public faulty::PlanAround {
   public:
    SlowPlan(std::unique_ptr<Plan> plan, std::int64_t wait) : PlanAround(std::move(plan)), wait_(wait) {}
    void run() override {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(wait_);
      inner_->run();
      while (std::chrono::steady_clock::now() < end) {
      }
    }

   private:
    std::int64_t wait_;
  };

  std::int64_t wait_ = kWait, wrong_ = 0;
};

/// A variable of the environment with a value for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace attest

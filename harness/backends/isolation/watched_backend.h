// A backend whose steps are noted where the harness sees them, while code of the worker itself takes turns with them.
//
// A worker that times a backend computes what it expects, too, and that may take longer than any step may. So it is not
// the answer that has a limit but each step: the harness looks whether one is under way and for how long.
#pragma once

#include <memory>
#include <utility>

#include "backends/backend.h"
#include "harness/backends/isolation/step_note.h"

namespace attest {

/// Both arguments outlive it.
class WatchedBackend : public Backend {
 public:
  WatchedBackend(Backend& inner, StepNote note) : inner_(inner), note_(note) {}

  Identity identity() const override { return inner_.identity(); }
  int contract() const override { return inner_.contract(); }
  Conventions conventions() const override { return inner_.conventions(); }
  Tuning tuning() const override { return inner_.tuning(); }
  std::optional<Refusal> refuse(const Call& call) const override {
    const StepNote::Step step(note_, "refuse");
    return inner_.refuse(call);
  }
  Arithmetic arithmetic(const Call& call) const override {
    const StepNote::Step step(note_, "arithmetic");
    return inner_.arithmetic(call);
  }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    const StepNote::Step step(note_, "prepare");
    std::unique_ptr<Plan> plan = inner_.prepare(call);
    if (!plan) return nullptr;
    return std::make_unique<WatchedPlan>(std::move(plan), note_);
  }

 private:
  class WatchedPlan : public Plan {
   public:
    WatchedPlan(std::unique_ptr<Plan> inner, StepNote note) : inner_(std::move(inner)), note_(note) {}
    ~WatchedPlan() override {
      const StepNote::Step step(note_, "drop");
      inner_.reset();
    }
    WatchedPlan(const WatchedPlan&) = delete;
    WatchedPlan& operator=(const WatchedPlan&) = delete;

    void upload(const Inputs& inputs) override {
      const StepNote::Step step(note_, "upload");
      inner_->upload(inputs);
    }
    void run() override {
      const StepNote::Step step(note_, "run");
      inner_->run();
    }
    void download(const Outputs& outputs) override {
      const StepNote::Step step(note_, "download");
      inner_->download(outputs);
    }
    std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
    std::optional<std::chrono::nanoseconds> device_time() const override { return inner_->device_time(); }

   private:
    std::unique_ptr<Plan> inner_;
    StepNote note_;
  };

  Backend& inner_;
  StepNote note_;
};

}  // namespace attest

// A backend in a process of its own: what it does to its memory, its process or its time stays there.
//
// It is a Backend like any other: refuse, arithmetic, prepare, upload, run and download become requests to a worker.
// Inputs lie read-only against inaccessible pages there, outputs against inaccessible pages. When a worker dies or
// takes too long, the step throws CaseFault and the next request starts a new worker.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <string>

#include "backends/backend.h"
#include "harness/isolation/isolation_options.h"
#include "harness/isolation/messages.h"
#include "harness/isolation/shared_memory.h"

namespace attest {

class IsolatedBackend : public Backend {
 public:
  /// Starts a worker. Throws BackendUnavailable with the worker's reason.
  IsolatedBackend(std::string name, const Context& context, const IsolationOptions& options);
  ~IsolatedBackend() override;

  Identity identity() const override { return identity_; }
  Conventions conventions() const override { return conventions_; }
  std::optional<Refusal> refuse(const Call& call) const override;
  Arithmetic arithmetic(const Call& call) const override;
  std::unique_ptr<Plan> prepare(const Call& call) override;

 private:
  class Worker;
  class RemotePlan;
  /// What the worker said about a case line.
  struct Answer {
    std::string line;
    std::optional<Refusal> refusal;
    Arithmetic arithmetic;
    std::exception_ptr fault;  ///< thrown once more to whoever asks next: the first to ask may have looked ahead only
  };
  /// The worker's reply. Throws CaseFault when it died, took too long, or found a fault; BackendError when it threw.
  Json ask(const Json& request) const;
  /// Starts a worker where there is none. `what`: for the message when that fails.
  void need_worker(const std::string& what) const;
  /// Anything but a message ends the worker and throws CaseFault.
  void expect_message(Received received, const std::string& what) const;
  std::string step_of(const std::string& what) const;
  const Answer& answer_for(const Call& call) const;

  std::string name_;
  Context context_;
  IsolationOptions options_;
  Identity identity_;
  Conventions conventions_;
  mutable std::unique_ptr<Worker> worker_;
  mutable int generation_ = 0;          ///< of workers; a plan belongs to one
  mutable std::deque<Answer> answers_;  ///< the last ones, the newest in front
  int plans_ = 0;                       ///< made so far; each has its number
};

}  // namespace attest

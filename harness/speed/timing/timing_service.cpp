#include "harness/speed/timing/timing_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "harness/speed/timing/timed_case.h"
#include "harness/speed/timing/timing_json.h"

namespace attest {
namespace {

/// As many as a message may hold: evenly chosen, so that medians stay.
void thin(std::vector<double>& list) {
  constexpr std::size_t kMost = 20'000;
  if (list.size() <= kMost) return;
  std::vector<double> kept;
  const double step = static_cast<double>(list.size()) / kMost;
  for (std::size_t n = 0; n < kMost; ++n) kept.push_back(list[static_cast<std::size_t>(static_cast<double>(n) * step)]);
  list = std::move(kept);
}

template <class T>
void thin(std::vector<T>& list) {
  constexpr std::size_t kMost = 20'000;
  if (list.size() > kMost) list.resize(kMost);
}

class TimingService : public WorkerService {
 public:
  TimingService(Backend& backend, int threads) : backend_(backend), threads_(threads), pools_(threads) {}

  Json answer(const Json& request) override {
    const std::string what = request.at("do").get<std::string>();
    Json reply = Json::object();
    if (what == "time") {
      reply["facts"] = open(request);
    } else if (!timed_ && what != "time: end") {
      return {{"threw", "no case is being timed"}};  // its worker has ended, and this is another
    } else if (what == "time: warm up") {
      reply["runs"] = timed_->warm_up(request.at("seconds").get<double>());
    } else if (what == "time: sample") {
      reply["sample"] = timed_->sample(request.at("runs").get<std::int64_t>(), request.at("in_full").get<int>());
    } else if (what == "time: cold") {
      timed_->run_cold(threads_);
    } else if (what == "time: judge") {
      timed_->judge(request.at("limits").get<MachineLimits>());
    } else if (what == "time: end") {
      close();
      return reply;
    } else {
      return {{"threw", "unknown request " + what}};
    }
    reply["wrong"] = timed_->wrong();
    reply["error_over_bound"] = timed_->error_over_bound();
    if (what == "time: judge") tell_steps(reply);
    return reply;
  }

 private:
  TimedFacts open(const Json& request) {
    close();
    source_ = case_from_line(request.at("case").get<std::string>());
    shared_.emplace(source_, std::vector<Backend*>{&backend_}, threads_, request.at("seed").get<std::uint64_t>());
    rest_before_timing();
    watch_.emplace();
    timed_.emplace(backend_, *shared_, *watch_, pools_);
    return facts_of(*shared_);
  }

  void close() {
    timed_.reset();
    watch_.reset();
    shared_.reset();
  }

  void tell_steps(Json& reply) const {
    StepSamples steps = timed_->steps();
    for (auto* list : {&steps.upload, &steps.run, &steps.download, &steps.cold, &steps.threads, &steps.processors,
                       &steps.cpu_after, &steps.after}) {
      thin(*list);
    }
    thin(steps.fetched);
    thin(steps.waited);
    thin(steps.uploaded);
    thin(steps.repeated);
    reply["steps"] = steps;
    reply["calibration_spread"] = timed_->calibration_spread();
    reply["change_seconds"] = timed_->change_seconds();
    reply["lowered_pools"] = timed_->lowered_pools();
    if (timed_->ulps()) reply["ulps"] = *timed_->ulps();
  }

  Backend& backend_;
  int threads_;
  LoadedPools pools_;
  Case source_;
  std::optional<TimedCase> shared_;
  std::optional<MachineWatch> watch_;
  std::optional<TimedHere> timed_;
};

}  // namespace

std::unique_ptr<WorkerService> make_timing_service(Backend& backend, int threads) {
  return std::make_unique<TimingService>(backend, threads);
}

}  // namespace attest

#include "harness/speed/timing/timed_in_worker.h"

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/speed/timing/no_speed_of.h"
#include "harness/speed/timing/timing_json.h"
#include "reference/options/case_line.h"

namespace attest {
TimedInWorker::TimedInWorker(Backend& backend, const Case& source, std::uint64_t seed)
    : backend_(backend), source_(source), name_(backend.identity().name) {
  const Json reply = ask({{"do", "time"}, {"case", print_case(source.problem)}, {"seed", seed}});
  if (reply.contains("facts")) facts_ = reply.at("facts").get<TimedFacts>();
}

TimedInWorker::~TimedInWorker() {
  const NoSpeedReason before = wrong_;
  if (before.kind == NoSpeed::threads_after_run) {
    end_worker(backend_);  // with its threads, which would disturb the next case
  } else if (before.kind != NoSpeed::crashed && before.kind != NoSpeed::timeout) {
    ask({{"do", "time: end"}});
  }
}

Json TimedInWorker::ask(const Json& request) {
  try {
    Json reply = ask_service(backend_, request, source_.problem);
    if (reply.contains("wrong") && wrong_.empty()) wrong_ = reply.at("wrong").get<NoSpeedReason>();
    if (reply.contains("error_over_bound")) error_over_bound_ = reply.at("error_over_bound").get<double>();
    return reply;
  } catch (const CaseFault& fault) {
    if (wrong_.empty()) wrong_ = no_speed_of(fault);
  } catch (const std::exception& error) {
    if (wrong_.empty()) wrong_ = {NoSpeed::threw, std::string("threw: ") + error.what()};
  }
  return Json::object();
}

std::int64_t TimedInWorker::warm_up(double seconds) {
  return ask({{"do", "time: warm up"}, {"seconds", seconds}}).value("runs", std::int64_t{1});
}

TakenSample TimedInWorker::sample(std::int64_t runs, int in_full) {
  const Json reply = ask({{"do", "time: sample"}, {"runs", runs}, {"in_full", in_full}});
  return reply.contains("sample") ? reply.at("sample").get<TakenSample>() : TakenSample{};
}

void TimedInWorker::run_cold(int /*threads: the worker knows them*/) { ask({{"do", "time: cold"}}); }

void TimedInWorker::judge(const MachineLimits& limits) {
  if (!wrong_.empty()) return;
  const Json reply = ask({{"do", "time: judge"}, {"limits", limits}});
  if (reply.contains("steps")) steps_ = reply.at("steps").get<StepSamples>();
  if (reply.contains("ulps")) ulps_ = reply.at("ulps").get<Spread>();
  calibration_spread_ = reply.value("calibration_spread", 0.0);
  change_seconds_ = reply.value("change_seconds", 0.0);
  lowered_pools_ = reply.value("lowered_pools", std::vector<std::string>());
}

}  // namespace attest

#include "harness/backends/isolation/isolated_backend.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "backends/side_by_side.h"
#include "harness/backends/isolation/apart.h"
#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/backends/isolation/file_space.h"
#include "harness/backends/isolation/serialized_inputs.h"
#include "harness/backends/isolation/tuning_json.h"
#include "harness/backends/isolation/worker.h"
#include "harness/backends/isolation/worker_process.h"
#include "harness/backends/plugin/arithmetic_rules.h"
#include "harness/base/junk_memory.h"
#include "harness/base/user_error.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/verdict.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// What became of a case by the account of its worker, which may say of itself what is bad and nothing else.
Status told_of_fault(const Json& reply) {
  const auto told = value_named<Status>(reply.value("status", ""));
  return told == Status::crashed || told == Status::timeout ? *told : Status::fail;
}

class IsolatedBackend : public Backend, public SideBySide {
 public:
  IsolatedBackend(std::string name, const Context& context, const IsolationOptions& options, std::string plugin);

  Identity identity() const override { return identity_; }
  Conventions conventions() const override { return conventions_; }
  int contract() const override { return contract_; }
  bool runs_side_by_side() const override { return side_by_side_; }
  std::optional<Refusal> refuse(const Call& call) const override;
  Arithmetic arithmetic(const Call& call) const override;
  Tuning tuning() const override { return tuning_; }
  void tune(const std::vector<std::int64_t>& values) override;
  std::unique_ptr<Plan> prepare(const Call& call) override;
  void wait_for_worker() const {
    if (worker_) ask({{"do", "identity"}});
  }
  void end_worker() const;
  const std::string& sandbox() const { return sandbox_; }
  std::string code() const;

 private:
  class RemotePlan;
  /// The worker's reply. Throws CaseFault when it died, took too long, or found a fault; BackendError when it threw.
  Json ask(const Json& request, std::chrono::milliseconds limit) const;
  Json ask(const Json& request) const { return ask(request, options_.limit); }
  /// What `read` takes from a message of the worker. Where that isn't there, ends the worker and throws CaseFault.
  template <class Read>
  auto heard(const Read& read) const {
    try {
      return read_message(read);
    } catch (const BadMessage&) {
      wrote_by_itself("its answer");
    }
  }
  /// Whoever writes to the connection by itself is not listened to any more.
  [[noreturn]] void wrote_by_itself(const std::string& where) const {
    end_worker();
    throw CaseFault(Status::crashed, {Cause::crashed}, "wrote to its connection to attest in " + where);
  }
  void throw_what_it_says(const Json& reply, const std::string& what) const;
  /// Starts a worker where there is none. `what`: for the message when that fails.
  void need_worker(const std::string& what) const;
  /// Anything but a message ends the worker and throws CaseFault.
  void expect_message(Received received, const std::string& what, std::chrono::milliseconds limit) const;
  /// Ends the worker and says why.
  CaseFault fault_of(Received received, const std::string& what, std::chrono::milliseconds limit) const;
  std::string step_of(const std::string& what) const;

  std::string name_, plugin_;
  Context context_;
  IsolationOptions options_;
  Identity identity_;
  Conventions conventions_;
  int contract_ = 0;
  bool side_by_side_ = false;
  Tuning tuning_;
  std::vector<std::int64_t> chosen_;  ///< given to each worker; empty as long as nothing was chosen
  mutable std::unique_ptr<WorkerProcess> worker_;
  mutable std::string sandbox_;        ///< of the last worker
  mutable std::int64_t requests_ = 0;  ///< made so far: an answer has the number of its request
  mutable int generation_ = 0;         ///< of workers; a plan belongs to one
  mutable std::exception_ptr end_;     ///< of the last worker that ended
  mutable int ended_generation_ = 0;   ///< and which it was
  int plans_ = 0;                      ///< made so far; each has its number
  FileSpace space_{page_size()};       ///< of the worker's file, behind its first page
  FileSpace input_space_{0};           ///< of that of inputs
};

IsolatedBackend::IsolatedBackend(std::string name, const Context& context, const IsolationOptions& options,
                                 std::string plugin)
    : name_(std::move(name)), plugin_(std::move(plugin)), context_(context), options_(options) {
  try {
    const Json reply = ask({{"do", "identity"}});
    heard([&] {
      identity_ = {reply.at("name").get<std::string>(), reply.at("library").get<std::string>(),
                   reply.at("device").get<std::string>(), plugin_};
      contract_ = reply.at("contract").get<int>();
      side_by_side_ = reply.at("side_by_side").get<bool>();
      tuning_ = reply.at("tuning").get<Tuning>();
      for (const auto& [field, member] : kConventionFields) {
        conventions_.*member = reply.at("conventions").at(std::string(field)).get<std::string>();
      }
    });
    if (options_.hears_conventions) options_.hears_conventions(name_, conventions_);
  } catch (const CaseFault& fault) {
    throw BackendUnavailable(fault.what());
  }
}

Json IsolatedBackend::ask(const Json& request, std::chrono::milliseconds limit) const {
  const std::string what = request.at("do").get<std::string>();
  need_worker(what);
  Json reply;
  Json numbered = request;
  numbered["request"] = ++requests_;
  const bool sent = worker_->send(numbered, options_.limit);
  expect_message(sent ? worker_->receive(reply, limit) : Received::closed, what, limit);
  if (!reply.contains("request") || reply.at("request") != requests_) wrote_by_itself(what);
  heard([&] { throw_what_it_says(reply, what); });
  return reply;
}

void IsolatedBackend::throw_what_it_says(const Json& reply, const std::string& what) const {
  if (reply.contains("fault")) {
    // What did wrong once isn't asked again: a thread that it left behind would end whatever comes next.
    end_worker();
    throw CaseFault(told_of_fault(reply), cause_from_text(reply.at("fault").get<std::string>()),
                    reply.at("reason").get<std::string>());
  }
  if (reply.contains("unusable")) throw UnusableBackend(reply.at("unusable").get<std::string>());
  if (reply.contains("threw")) {
    const std::string reason = reply.at("threw").get<std::string>();
    if (reason == "std::bad_alloc")
      throw CaseFault(Status::crashed, {Cause::out_of_memory}, "ran out of memory in " + step_of(what));
    throw BackendError(reason);
  }
}

void IsolatedBackend::need_worker(const std::string& what) const {
  if (worker_) return;
  worker_ = std::make_unique<WorkerProcess>(name_, context_, options_, plugin_);
  ++generation_;
  Json hello;
  try {
    expect_message(worker_->greeting(hello, options_.limit), what, options_.limit);
  } catch (const BackendUnavailable&) {
    worker_.reset();
    throw;
  }
  sandbox_ = worker_->sandbox();
  worker_->greeted();
  if (hello.contains("unavailable")) {
    worker_.reset();
    throw BackendUnavailable(heard([&] { return hello.at("unavailable").get<std::string>(); }));
  }
  if (!chosen_.empty()) ask({{"do", "tune"}, {"values", chosen_}});
}

void IsolatedBackend::tune(const std::vector<std::int64_t>& values) {
  chosen_ = values;  // kept where the worker ends over them: the next one must not take others for these
  ask({{"do", "tune"}, {"values", values}});
  for (std::size_t n = 0; n < values.size(); ++n) tuning_.parameters.at(n).value = values[n];
}

std::string IsolatedBackend::step_of(const std::string& what) const {
  const std::string step = worker_->file().step().name();
  return step.empty() ? what : step;
}

void IsolatedBackend::expect_message(Received received, const std::string& what,
                                     std::chrono::milliseconds limit) const {
  if (received == Received::message) return;
  ended_generation_ = generation_;
  end_ = std::make_exception_ptr(fault_of(received, what, limit));
  std::rethrow_exception(end_);
}

CaseFault IsolatedBackend::fault_of(Received received, const std::string& what, std::chrono::milliseconds limit) const {
  const std::string step = step_of(what);
  if (received == Received::timeout) {
    end_worker();
    return CaseFault(Status::timeout, {Cause::took_too_long},
                     step + " took more than " + fmt::format("{:g} s", static_cast<double>(limit.count()) / 1000));
  }
  const int status = worker_->await();
  const std::string words = worker_->file().exit_messages();
  const std::string end = worker_->text_of_end(), excess = worker_->memory_excess();
  worker_.reset();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMemoryFault && !words.empty()) {
    return CaseFault(Status::fail, {Cause::touched_outside}, words + " in " + step);
  }
  if (!excess.empty()) {
    return CaseFault(Status::crashed, {Cause::out_of_memory, "killed"},
                     "killed: out of memory in " + step + ": " + excess);
  }
  return CaseFault(Status::crashed, {Cause::crashed}, end + " in " + step);
}

void IsolatedBackend::end_worker() const {
  if (worker_) worker_->end();
  worker_.reset();
}

std::string IsolatedBackend::code() const {
  const Json reply = ask({{"do", "code"}});
  return heard([&] { return reply.at("code").get<std::string>(); });
}

std::optional<Refusal> IsolatedBackend::refuse(const Call& call) const {
  const Json reply = ask({{"do", "refuse"}, {"case", print_call(call)}});
  if (!reply.contains("refusal")) return std::nullopt;
  return heard([&] {
    return Refusal{reply.at("refusal").get<std::string>(), reply.at("refused_by").get<RefusalCause>()};
  });
}

Arithmetic IsolatedBackend::arithmetic(const Call& call) const {
  const Json reply = ask({{"do", "arithmetic"}, {"case", print_call(call)}});
  Arithmetic stated = heard([&] { return reply.at("arithmetic").get<Arithmetic>(); });
  // The worker holds its backend to these rules, and nobody holds the worker to them.
  if (const auto fault = attest::fault_of(stated)) throw BackendError(*fault);
  if (options_.hears_arithmetic) options_.hears_arithmetic(name_, call, stated);
  return stated;
}

/// Prepare, upload and run go to the worker as one request, at run: a message there and back can cost more than a small
/// case. The worker notes in shared memory which of them it is in. Each plan has parts of the shared file of its own:
/// what it was given stays there while others take their steps.
class IsolatedBackend::RemotePlan : public Plan, public RunsElsewhere, public RunsApart {
 public:
  RemotePlan(IsolatedBackend& backend, int number, const Call& call)
      : backend_(backend),
        generation_(backend.generation_),
        number_(number),
        limit_(request_limit(backend.options_, call)),
        line_(print_call(call)),
        inputs_range_(backend.input_space_),
        outputs_range_(backend.space_) {}
  ~RemotePlan() override {
    if (backend_.worker_ && generation_ == backend_.generation_) {
      backend_.worker_->send({{"do", "drop"}, {"plan", number_}}, backend_.options_.limit);  // no reply
    }
  }

  void upload(const Inputs& inputs) override {
    laid_out_ = nullptr;
    // A page at least, so that the range behind it begins with one.
    const std::size_t first = inputs_range_.resize(std::max(page_size(), SerializedInputs(inputs, 0).regions().end()));
    const SerializedInputs serialized(inputs, first);
    SharedFile& file = shared_inputs();
    file.reserve(serialized.regions().end());
    serialized.copy_to(file);
    pending_ = {{"regions", describe_regions(serialized.regions())}, {"inputs", serialized.description()}};
  }

  void run() override {
    if (!line_.empty()) pending_["case"] = line_;
    // The worker makes the plan only now, whatever has ended since it was asked for here.
    if (JunkMemory::alive() || (!line_.empty() && made_in_junk_memory_)) pending_["junk"] = true;
    const Json reply = ask("run", std::move(pending_));
    pending_ = Json::object();
    backend_.heard([&] {
      if (!line_.empty()) workspace_ = reply.at("workspace").get<std::size_t>();
      if (reply.contains("device_ns"))
        device_time_ = std::chrono::nanoseconds(reply.at("device_ns").get<std::int64_t>());
    });
    line_.clear();
  }

  void run_beside(Plan& other) override { ask("run_both", {{"other", dynamic_cast<RemotePlan&>(other).number_}}); }

  void download(const Outputs& outputs) override {
    laid_out_ = nullptr;
    const OutputPlace place = place_of(outputs);
    put(outputs, place.regions);
    ask("download", {{"regions", describe_regions(place.regions)}, {"outputs", place.description}});
    take(outputs, place.regions);
  }

  void give(const Inputs& inputs, const Outputs& outputs) override {
    if (!line_.empty()) {
      const Json reply = ask("prepare", {{"case", line_}});
      workspace_ = backend_.heard([&] { return reply.at("workspace").get<std::size_t>(); });
      line_.clear();
      const WorkerProcess& worker = *backend_.worker_;
      prepare_seconds_ = worker.answered().clock - worker.asked().clock;
    }
    const std::size_t first = inputs_range_.resize(std::max(page_size(), SerializedInputs(inputs, 0).regions().end()));
    const SerializedInputs serialized(inputs, first);
    const OutputPlace place = place_of(outputs);
    shared_inputs().reserve(serialized.regions().end());
    shared().reserve(place.regions.end());
    Json layout = {{"regions", describe_regions(serialized.regions())},
                   {"inputs", serialized.description()},
                   {"output regions", describe_regions(place.regions)},
                   {"outputs", place.description}};
    if (layout != laid_out_) {
      laid_out_ = layout;
      ask("lay out", std::move(layout));
    }
    backend_.worker_->stop();
    serialized.copy_to(shared_inputs());
    put(outputs, place.regions);
  }
  ApartCost take_steps(ApartSteps steps) override {
    shared();
    backend_.ask({{"do", "steps"}, {"plan", number_}, {"which", static_cast<int>(steps)}}, limit_);
    // It stays stopped: what it would do now is done while others are timed.
    WorkerProcess& worker = *backend_.worker_;
    const WorkerProcess::Moment begin = worker.asked(), end = worker.answered();
    worker.stop();
    // Whoever answers and goes on is not done yet.
    const double afterwards = std::max(0.0, worker.now().cpu - end.cpu);
    return {end.clock - begin.clock + afterwards, end.cpu - begin.cpu + afterwards};
  }
  void await_rest(std::chrono::milliseconds limit) override {
    shared();
    backend_.worker_->await_rest(limit);
  }
  void take(const Outputs& outputs) override { take(outputs, place_of(outputs).regions); }
  double prepare_seconds() const override { return prepare_seconds_; }
  double cpu_seconds() const override { return backend_.worker_ ? backend_.worker_->now().cpu : 0; }

  std::size_t workspace_bytes() const override { return workspace_; }
  std::optional<std::chrono::nanoseconds> device_time() const override { return device_time_; }

 private:
  static constexpr unsigned char kLead = 0x5a;

  struct OutputPlace {
    RegionList regions;
    Json description;
  };
  OutputPlace place_of(const Outputs& outputs) {
    RegionList sizes(0);
    describe_outputs(outputs, sizes);
    OutputPlace place{RegionList(outputs_range_.resize(sizes.end())), {}};
    place.description = describe_outputs(outputs, place.regions);
    return place;
  }
  /// Gives the worker what the outputs hold.
  void put(const Outputs& outputs, const RegionList& regions) const {
    SharedFile& file = shared();
    file.reserve(regions.end());
    const auto views = list_outputs(outputs);
    for (std::size_t n = 0; n < views.size(); ++n) {
      const Region& region = regions.all()[n];
      file.fill(region, views[n].second.data, used_ranges(views[n].second));
      std::memset(file.pages(region), kLead, region.lead());
    }
  }
  /// And takes what it made of them.
  void take(const Outputs& outputs, const RegionList& regions) const {
    const SharedFile& file = shared();
    const auto views = list_outputs(outputs);
    for (std::size_t n = 0; n < views.size(); ++n) {
      const Region& region = regions.all()[n];
      const std::byte* lead = file.pages(region);
      for (std::size_t at = 0; at < region.lead(); ++at) {
        if (lead[at] == std::byte{kLead}) continue;
        throw CaseFault(Status::fail, {Cause::touched_outside},
                        "wrote " + std::to_string(region.lead() - at) + " bytes before the start of " + views[n].first);
      }
      for (const ByteRange& range : used_ranges(views[n].second)) {
        if (range.size() == 0) continue;
        std::memcpy(static_cast<std::byte*>(views[n].second.data) + range.first, file.data(region) + range.first,
                    range.size());
      }
    }
  }
  SharedFile& shared_inputs() const {
    shared();
    return backend_.worker_->inputs();
  }
  SharedFile& shared() const {
    if (!backend_.worker_ || generation_ != backend_.generation_) {
      // Somebody else, who only looked ahead, may have been the first to learn of it.
      if (backend_.end_ && backend_.ended_generation_ == generation_) std::rethrow_exception(backend_.end_);
      throw BackendError("its worker has ended");
    }
    return backend_.worker_->file();
  }
  Json ask(const std::string& what, Json request = Json::object()) const {
    shared();
    request["do"] = what;
    request["plan"] = number_;
    if (std::this_thread::get_id() != home_) request["elsewhere"] = true;
    return backend_.ask(request, limit_);
  }

  IsolatedBackend& backend_;
  int generation_, number_;
  std::chrono::milliseconds limit_;
  std::string line_;               ///< until the worker has prepared it
  Json pending_ = Json::object();  ///< an upload that the next run takes along
  Json laid_out_;                  ///< what the worker was told of where steps find their tensors
  double prepare_seconds_ = 0;
  const std::thread::id home_ = std::this_thread::get_id();
  const bool made_in_junk_memory_ = JunkMemory::alive();
  FileRange inputs_range_, outputs_range_;
  std::size_t workspace_ = 0;
  std::optional<std::chrono::nanoseconds> device_time_;
};

std::unique_ptr<Plan> IsolatedBackend::prepare(const Call& call) {
  need_worker("prepare");
  return std::make_unique<RemotePlan>(*this, ++plans_, call);
}

}  // namespace

std::unique_ptr<Backend> isolated_backend(std::string name, const Context& context, const IsolationOptions& options,
                                          std::string plugin) {
  return std::make_unique<IsolatedBackend>(std::move(name), context, options, std::move(plugin));
}

namespace {

const IsolatedBackend* isolated_part(const Backend& backend) {
  if (const auto* other = dynamic_cast<const StandsFor*>(&backend)) return isolated_part(other->backend());
  return dynamic_cast<const IsolatedBackend*>(&backend);
}

}  // namespace

bool is_isolated(const Backend& backend) { return isolated_part(backend) != nullptr; }

void wait_for_worker(const Backend& backend) {
  if (const IsolatedBackend* isolated = isolated_part(backend)) isolated->wait_for_worker();
}

std::string sandbox_of(const Backend& backend) {
  const IsolatedBackend* isolated = isolated_part(backend);
  return isolated ? isolated->sandbox() : "";
}

std::string worker_code(const Backend& backend) {
  const IsolatedBackend* isolated = isolated_part(backend);
  return isolated ? isolated->code() : "";
}

}  // namespace attest

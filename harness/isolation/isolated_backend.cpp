#include "harness/isolation/isolated_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "harness/base/machine.h"
#include "harness/isolation/parcels.h"
#include "harness/isolation/worker.h"
#include "harness/verdict/verdict.h"
#include "reference/case_line.h"
#include "reference/options.h"

extern char** environ;

namespace attest {

/// The process, its socket and the memory shared with it.
class IsolatedBackend::Worker {
 public:
  Worker(const std::string& name, const Context& context, double memory_gib) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
      throw BackendUnavailable("no socket for a worker process");
    }
    socket_ = sockets[0];
    // Out of the way of descriptors 3 and 4, which the worker will have.
    const int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10), memory = fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 10);
    close(sockets[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs, kWorkerSocket);
    posix_spawn_file_actions_adddup2(&actions, memory, kWorkerFile);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is the report's
    std::vector<std::string> words = {
        program_path().string(),   "worker", name, "--threads", std::to_string(context.threads), "--memory",
        std::to_string(memory_gib)};
    if (!context.device.empty()) words.insert(words.end(), {"--device", context.device});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // Several workers take turns: threads of one that wait in a loop would keep the cores from the next.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    const int error = posix_spawn(&process_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(theirs);
    close(memory);
    if (error != 0) {
      close(socket_);
      throw BackendUnavailable(std::string("no worker process: ") + std::strerror(error));
    }
  }
  ~Worker() {
    close(socket_);
    if (process_ <= 0) return;
    // The closed socket ends it; a worker that doesn't notice is ended.
    for (int tries = 0; tries < 50; ++tries) {
      if (waitpid(process_, nullptr, WNOHANG) != 0) return;
      usleep(2000);
    }
    end();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int socket() const { return socket_; }
  SharedFile& file() { return file_; }

  /// Ends the process and says how it had ended, if it had.
  int end() {
    int status = 0;
    kill(process_, SIGKILL);
    waitpid(process_, &status, 0);
    process_ = -1;
    return status;
  }
  /// Waits for a process that closed its socket.
  int await() {
    int status = 0;
    for (int tries = 0; tries < 500; ++tries) {
      if (waitpid(process_, &status, WNOHANG) != 0) {
        process_ = -1;
        return status;
      }
      usleep(2000);
    }
    return end();
  }

 private:
  SharedFile file_;
  int socket_ = -1;
  pid_t process_ = -1;
};

namespace {

std::string text_of_end(int status) {
  if (WIFSIGNALED(status)) return std::string("ended by ") + strsignal(WTERMSIG(status));
  return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

IsolatedBackend::IsolatedBackend(std::string name, const Context& context, const IsolationOptions& options)
    : name_(std::move(name)), context_(context), options_(options) {
  try {
    const Json reply = ask({{"do", "identity"}});
    identity_ = {reply.at("name").get<std::string>(), reply.at("library").get<std::string>(),
                 reply.at("device").get<std::string>()};
    const auto c = reply.at("conventions").get<std::vector<std::string>>();
    conventions_ = {c.at(0), c.at(1), c.at(2), c.at(3), c.at(4), c.at(5), c.at(6), c.at(7), c.at(8), c.at(9)};
  } catch (const CaseFault& fault) {
    throw BackendUnavailable(fault.what());
  }
}

IsolatedBackend::~IsolatedBackend() = default;

Json IsolatedBackend::ask(const Json& request) const {
  const std::string what = request.at("do").get<std::string>();
  need_worker(what);
  Json reply;
  const int socket = worker_->socket();
  expect_message(send_message(socket, request) ? receive_message(socket, reply, options_.limit) : Received::closed,
                 what);
  if (reply.contains("fault")) {
    throw CaseFault(Status::fail, reply.at("fault").get<std::string>(), reply.at("fault").get<std::string>());
  }
  if (reply.contains("threw")) {
    const std::string reason = reply.at("threw").get<std::string>();
    if (reason == "std::bad_alloc")
      throw CaseFault(Status::crashed, "crashed", "ran out of memory in " + step_of(what));
    throw BackendError(reason);
  }
  return reply;
}

void IsolatedBackend::need_worker(const std::string& what) const {
  if (worker_) return;
  worker_ = std::make_unique<Worker>(name_, context_, options_.memory_gib);
  ++generation_;
  Json hello;
  expect_message(receive_message(worker_->socket(), hello, options_.limit), what);
  if (!hello.contains("unavailable")) return;
  worker_.reset();
  throw BackendUnavailable(hello.at("unavailable").get<std::string>());
}

std::string IsolatedBackend::step_of(const std::string& what) const {
  const std::string step = worker_->file().step();
  return step.empty() ? what : step;
}

void IsolatedBackend::expect_message(Received received, const std::string& what) const {
  if (received == Received::message) return;
  const std::string step = step_of(what);
  if (received == Received::timeout) {
    worker_->end();
    worker_.reset();
    throw CaseFault(
        Status::timeout, "took too long",
        step + " took more than " + fmt::format("{:g} s", static_cast<double>(options_.limit.count()) / 1000));
  }
  const int status = worker_->await();
  const std::string words = worker_->file().last_words();
  worker_.reset();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMemoryFault && !words.empty()) {
    throw CaseFault(Status::fail, "touched memory outside its tensors", words + " in " + step);
  }
  throw CaseFault(Status::crashed, "crashed", text_of_end(status) + " in " + step);
}

const IsolatedBackend::Answer& IsolatedBackend::answer_for(const Call& call) const {
  constexpr std::size_t kMostAnswers = 4;  // a case is looked at while the one before runs, and then again
  std::string line = print_case(problem_of(call));
  const auto known = std::find_if(answers_.begin(), answers_.end(), [&](const Answer& a) { return a.line == line; });
  if (known != answers_.end()) {
    if (!known->fault) return *known;
    const std::exception_ptr fault = known->fault;
    answers_.erase(known);
    std::rethrow_exception(fault);
  }
  Answer& answer = answers_.emplace_front();
  if (answers_.size() > kMostAnswers) answers_.pop_back();
  answer.line = std::move(line);
  try {
    const Json reply = ask({{"do", "refuse"}, {"case", answer.line}});
    if (reply.contains("refusal"))
      answer.refusal = Refusal{reply.at("refusal").get<std::string>()};
    else
      answer.arithmetic = reply.at("arithmetic").get<Arithmetic>();
  } catch (const CaseFault&) {
    answer.fault = std::current_exception();
    throw;
  } catch (...) {
    answers_.pop_front();
    throw;
  }
  return answer;
}

std::optional<Refusal> IsolatedBackend::refuse(const Call& call) const { return answer_for(call).refusal; }

Arithmetic IsolatedBackend::arithmetic(const Call& call) const { return answer_for(call).arithmetic; }

/// Prepare, upload and run go to the worker as one request, at run: a message there and back can cost more than a small
/// case. The worker notes in shared memory which of them it is in.
class IsolatedBackend::RemotePlan : public Plan {
 public:
  RemotePlan(IsolatedBackend& backend, int number, std::string line)
      : backend_(backend), generation_(backend.generation_), number_(number), line_(std::move(line)) {}
  ~RemotePlan() override {
    if (backend_.worker_ && generation_ == backend_.generation_) {
      send_message(backend_.worker_->socket(), {{"do", "drop"}, {"plan", number_}});  // no reply
    }
  }

  void upload(const Inputs& inputs) override {
    const InputParcel parcel(inputs, page_size());
    inputs_end_ = parcel.regions().end();
    SharedFile& file = shared();
    file.reserve(inputs_end_);
    parcel.copy_to(file);
    pending_ = {{"regions", describe_regions(parcel.regions())}, {"inputs", parcel.description()}};
  }

  void run() override {
    if (!line_.empty()) pending_["case"] = line_;
    const Json reply = ask("run", std::move(pending_));
    pending_ = Json::object();
    if (!line_.empty()) workspace_ = reply.at("workspace").get<std::size_t>();
    line_.clear();
    if (reply.contains("device_ns")) device_time_ = std::chrono::nanoseconds(reply.at("device_ns").get<std::int64_t>());
  }

  void download(const Outputs& outputs) override {
    RegionList regions(inputs_end_);
    const Json description = describe_outputs(outputs, regions);
    SharedFile& file = shared();
    file.reserve(regions.end());
    const auto views = list_outputs(outputs);
    for (std::size_t n = 0; n < views.size(); ++n) {
      const Region& region = regions.all()[n];
      std::memset(file.pages(region), kLead, region.lead());
      if (region.bytes > 0) std::memcpy(file.data(region), views[n].second.data, region.bytes);
    }
    ask("download", {{"regions", describe_regions(regions)}, {"outputs", description}});
    for (std::size_t n = 0; n < views.size(); ++n) {
      const Region& region = regions.all()[n];
      const std::byte* lead = file.pages(region);
      for (std::size_t at = 0; at < region.lead(); ++at) {
        if (lead[at] == std::byte{kLead}) continue;
        throw CaseFault(Status::fail, "touched memory outside its tensors",
                        "wrote " + std::to_string(region.lead() - at) + " bytes before the start of " + views[n].first);
      }
      if (region.bytes > 0) std::memcpy(views[n].second.data, file.data(region), region.bytes);
    }
  }

  std::size_t workspace_bytes() const override { return workspace_; }
  std::optional<std::chrono::nanoseconds> device_time() const override { return device_time_; }

 private:
  static constexpr unsigned char kLead = 0x5a;

  SharedFile& shared() const {
    if (!backend_.worker_ || generation_ != backend_.generation_) throw BackendError("its worker has ended");
    return backend_.worker_->file();
  }
  Json ask(const std::string& what, Json request = Json::object()) const {
    shared();
    request["do"] = what;
    request["plan"] = number_;
    return backend_.ask(request);
  }

  IsolatedBackend& backend_;
  int generation_, number_;
  std::string line_;               ///< until the worker has prepared it
  Json pending_ = Json::object();  ///< an upload that the next run takes along
  std::size_t workspace_ = 0, inputs_end_ = page_size();
  std::optional<std::chrono::nanoseconds> device_time_;
};

std::unique_ptr<Plan> IsolatedBackend::prepare(const Call& call) {
  need_worker("prepare");
  return std::make_unique<RemotePlan>(*this, ++plans_, print_case(problem_of(call)));
}

}  // namespace attest

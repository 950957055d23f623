#include "harness/backends/isolation/worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "backends/side_by_side.h"
#include "harness/backends/isolation/apart.h"
#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/backends/isolation/sandbox.h"
#include "harness/backends/isolation/serialized_inputs.h"
#include "harness/backends/isolation/tuning_json.h"
#include "harness/backends/plugin/foreign_backends.h"
#include "harness/base/backend_source.h"
#include "harness/base/fingerprint.h"
#include "harness/base/float_environment.h"
#include "harness/base/junk_memory.h"
#include "harness/base/machine.h"
#include "harness/base/restart.h"
#include "harness/base/user_error.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/verdict.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

// What the signal handler looks at.
const GuardedArea* input_area = nullptr;
const GuardedArea* output_area = nullptr;
char* exit_messages = nullptr;

/// An access beside a tensor becomes a sentence for the harness; anything else dies as it would have.
void on_fault(int number, siginfo_t* info, void* context) {
  bool write = false;
#if defined(__x86_64__)
  write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  (void)context;
#endif
  for (const GuardedArea* area : {input_area, output_area}) {
    if (area && area->describe(info->si_addr, write, exit_messages, kStepAt)) _exit(kMemoryFault);
  }
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(number, &plain, nullptr);
  if (info->si_code <= 0) raise(number);  // sent, not caused: it doesn't happen again by itself
}

void catch_faults() {
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

class Worker {
 public:
  explicit Worker(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  /// The reply; null when nobody waits for one. A request from elsewhere than the thread in which the harness made the
  /// plan is served by a new thread here.
  Json answer(const Json& request) {
    if (!request.value("elsewhere", false)) return serve(request);
    Json reply;
    std::exception_ptr failure;
    std::thread([&] {
      try {
        reply = serve(request);
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
    if (failure) std::rethrow_exception(failure);
    return reply;
  }

 private:
  Json serve(const Json& request) {
    const std::string what = request.at("do").get<std::string>();
    note_step(what);
    if (what == "identity") {
      const Identity id = backend_->identity();
      Json reply = {
          {"name", id.name}, {"library", id.library}, {"device", id.device}, {"contract", backend_->contract()}};
      const Conventions conventions = backend_->conventions();
      for (const auto& [name, value] : kConventionFields) {
        reply["conventions"][std::string(name)] = conventions.*value;
      }
      reply["tuning"] = backend_->tuning();
      reply["side_by_side"] = runs_side_by_side(*backend_);
      return reply;
    }
    if (what == "code") {
      std::vector<std::filesystem::path> files = loaded_libraries();
      files.emplace_back("/proc/self/exe");
      return {{"code", fingerprint_of(files)}};
    }
    if (what == "tune") {
      backend_->tune(request.at("values").get<std::vector<std::int64_t>>());
      return Json::object();
    }
    if (what == "refuse") {
      if (const auto refusal = backend_->refuse(call_of(request)))
        return {{"refusal", refusal->reason}, {"refused_by", name_of(refusal->cause)}};
      return Json::object();
    }
    if (what == "arithmetic") return {{"arithmetic", backend_->arithmetic(call_of(request))}};
    if (what == "run") return run(request);
    if (what == "prepare") {
      prepare(request);
      return {{"workspace", plans_.at(request.at("plan").get<int>()).plan->workspace_bytes()}};
    }
    if (what == "lay out") return lay_out(request);
    if (what == "steps") return take_steps(request);
    if (what == "run_both") {
      run_side_by_side(*plans_.at(request.at("plan").get<int>()).plan, *plans_.at(request.at("other").get<int>()).plan);
      return Json::object();
    }
    if (what == "download") return download(request, plans_.at(request.at("plan").get<int>()));
    if (what == "drop") {
      plans_.erase(request.at("plan").get<int>());
      return nullptr;  // nobody waits for it
    }
    return {{"threw", "unknown request " + what}};
  }

  static Call call_of(const Json& request) { return parse_case(request.at("case").get<std::string>()); }

  /// A plan with what its views point at.
  struct Held {
    std::unique_ptr<GuardedArea> inputs, outputs;
    Json input_regions;                               ///< which `inputs` maps
    std::unique_ptr<UnpackedInputs> laid_out_inputs;  ///< for all steps in one request; so are the outputs
    Outputs laid_out_outputs;
    std::vector<std::vector<std::int64_t>> starts;
    std::unique_ptr<Plan> plan;  ///< goes first

    Held() = default;
    Held(Held&&) = default;
    Held& operator=(Held&&) = default;
    ~Held() {
      if (inputs && input_area == inputs.get()) input_area = nullptr;
      if (outputs && output_area == outputs.get()) output_area = nullptr;
    }
  };

  static StepNote note() { return StepNote(exit_messages); }
  static void note_step(const std::string& step) { note().write(step.c_str()); }

  void prepare(const Json& request) {
    note_step("prepare");
    Held held;
    held.plan = backend_->prepare(call_of(request));
    if (!held.plan) throw BackendError("prepare returned no plan");
    plans_.insert_or_assign(request.at("plan").get<int>(), std::move(held));
  }

  static void upload(const Json& request, Held& held) {
    note_step("upload");
    const Json& regions = request.at("regions");
    // The same regions again stay at their addresses, as tensors do whose owner writes other numbers into them.
    const bool same = held.inputs && held.input_regions == regions;
    auto area = same ? nullptr : std::make_unique<GuardedArea>(kWorkerInputs, regions_from(regions), false);
    const GuardedArea& where = same ? *held.inputs : *area;
    const UnpackedInputs unpacked(request.at("inputs"), where);
    input_area = &where;
    held.plan->upload(unpacked.inputs);
    if (same) return;
    held.inputs = std::move(area);  // the ones before may go only now: a plan keeps its views until the next upload
    held.input_regions = regions;
  }

  /// With a case line the plan is made first; with inputs they are uploaded first.
  Json run(const Json& request) {
    Json reply = Json::object();
    std::optional<JunkMemory> junk;
    if (request.value("junk", false)) junk.emplace();
    const bool fresh = request.contains("case");
    if (fresh) prepare(request);
    Held& held = plans_.at(request.at("plan").get<int>());
    if (fresh) reply["workspace"] = held.plan->workspace_bytes();
    if (request.contains("inputs")) upload(request, held);
    note_step("run");
    input_area = held.inputs.get();  // other plans may have been served since the upload
    const FloatEnvironment environment;
    held.plan->run();
    if (const FailureCause cause{cause_of(environment.changed())}; !cause.empty()) {
      reply["fault"] = reply["reason"] = cause.text();
    }
    if (const auto time = held.plan->device_time()) reply["device_ns"] = time->count();
    return reply;
  }

  /// Makes steps ready that are timed: nothing is left to be read from messages then.
  Json lay_out(const Json& request) {
    Held& held = plans_.at(request.at("plan").get<int>());
    held.inputs = std::make_unique<GuardedArea>(kWorkerInputs, regions_from(request.at("regions")), false);
    held.input_regions = request.at("regions");
    held.laid_out_inputs = std::make_unique<UnpackedInputs>(request.at("inputs"), *held.inputs);
    held.outputs = std::make_unique<GuardedArea>(kWorkerFile, regions_from(request.at("output regions")), true);
    held.laid_out_outputs = unpack_outputs(request.at("outputs"), *held.outputs, held.starts);
    return Json::object();
  }

  Json take_steps(const Json& request) {
    const int which = request.at("which").get<int>();
    if (which == static_cast<int>(ApartSteps::none)) return Json::object();
    const auto begins = [&](ApartSteps step, const char* name) {
      if ((which & static_cast<int>(step)) == 0) return false;
      note_step(name);
      return true;
    };
    Held& held = plans_.at(request.at("plan").get<int>());
    input_area = held.inputs.get();
    output_area = held.outputs.get();
    const FloatEnvironment environment;
    if (begins(ApartSteps::upload, "upload")) held.plan->upload(held.laid_out_inputs->inputs);
    if (begins(ApartSteps::run, "run")) held.plan->run();
    if (begins(ApartSteps::download, "download")) held.plan->download(held.laid_out_outputs);
    if (const FailureCause cause{cause_of(environment.changed())}; !cause.empty())
      return {{"fault", cause.text()}, {"reason", cause.text()}};
    return Json::object();
  }

  static Json download(const Json& request, Held& held) {
    held.outputs = std::make_unique<GuardedArea>(kWorkerFile, regions_from(request.at("regions")), true);
    input_area = held.inputs.get();
    output_area = held.outputs.get();
    const std::size_t threads = count_threads();
    const Outputs outputs = unpack_outputs(request.at("outputs"), *held.outputs, held.starts);
    held.plan->download(outputs);
    return written_afterwards(outputs, count_threads() > threads);
  }

  std::unique_ptr<Backend> backend_;
  static std::size_t count_threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  }

  /// Whether an output still changes while nothing may: for a moment, and where download left a thread behind for so
  /// long that it gets its turn on a busy machine, too.
  static Json written_afterwards(const Outputs& outputs, bool thread_left) {
    struct Kept {
      std::string name;
      const std::byte* at;
      std::vector<std::byte> bytes;
    };
    std::vector<Kept> kept;
    for (const auto& [name, view] : list_outputs(outputs)) {
      for (const ByteRange& range : used_ranges(view)) {
        const std::byte* at = static_cast<const std::byte*>(view.data) + range.first;
        kept.push_back({name, at, {at, at + range.size()}});
      }
    }
    const int looks = thread_left ? 200 : 1;
    for (int look = 0; look < looks; ++look) {
      usleep(look == 0 ? 20 : 1000);
      for (const Kept& one : kept) {
        if (!one.bytes.empty() && std::memcmp(one.bytes.data(), one.at, one.bytes.size()) != 0) {
          const FailureCause cause{Cause::changed_after_download, one.name};
          return {{"fault", cause.text()}, {"reason", "changed " + one.name + " after download had returned"}};
        }
      }
    }
    return Json::object();
  }

  std::map<int, Held> plans_;
};

Json threw(const std::string& what) { return {{"threw", what}}; }

/// Waits until the harness has gone, and then a moment: a worker that isn't stuck in a step ends by itself, also where
/// the system sends no signal at the harness's end.
void end_with_the_harness() {
  pollfd harness{kWorkerSocket, /*events: its end alone*/ 0, 0};
  while (poll(&harness, 1, -1) < 0 && errno == EINTR) {
  }
  sleep(1);
  kill(getpid(), SIGKILL);
}

std::unique_ptr<Backend> made_from(std::span<const BackendEntry> registry, const WorkerOptions& options) {
  for (const BackendEntry& entry : registry) {
    if (entry.name == options.backend && entry.make) return entry.make({options.threads, options.device});
  }
  return nullptr;
}

/// This program once more, in the sandbox that this process is in: without threads that libraries began when they were
/// loaded, and that are in none.
[[noreturn]] void begin_anew(const WorkerOptions& options) {
  std::vector<std::string> words = restart().words;
  if (words.empty()) words.push_back(program_path().string());
  words.insert(words.end(), {"worker", options.backend, "--threads", std::to_string(options.threads)});
  if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
  if (!options.plugin.empty()) words.insert(words.end(), {"--plugin", options.plugin});
  std::string folders;
  for (const std::string& folder : restart().readable) folders += (folders.empty() ? "" : ":") + folder;
  setenv("ATTEST_PYTHON_PATH", folders.c_str(), 1);
  setenv("PYTHONSAFEPATH", "1", 1);  // the scratch folder, in which it begins, holds no module
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(restart().file.c_str(), arguments.data());
  _exit(2);
}

/// What code of strangers finds: the system, its own folder and that of what runs it. The harness is told the layers in
/// force before any of that code runs. False where it has gone.
bool enter_sandbox_of(const WorkerOptions& options) {
  SandboxRequest request{layers_from_text(options.sandbox), options.scratch, {}, false, false, !has_one_thread()};
  const std::string object = python_object(options.plugin);
  const std::filesystem::path file = object.empty() ? options.plugin : object.substr(0, object.rfind(':'));
  if (file.is_absolute()) request.readable.push_back(file.parent_path());
  request.readable.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  for (const std::filesystem::path& library : loaded_libraries()) request.readable.push_back(library.parent_path());
  request.readable.insert(request.readable.end(), restart().readable.begin(), restart().readable.end());
  Json layers = Json::array();
  for (const SandboxLayerState& one : enter_sandbox(request)) {
    layers.push_back({{"layer", one.layer}, {"missing", one.missing}});
  }
  if (!send_message(kWorkerSocket, {{"sandbox", layers}})) return false;
  if (request.executes) begin_anew(options);
  return true;
}

/// Without a backend's name: says in the greeting which there are.
std::unique_ptr<Backend> made_from_plugin(const WorkerOptions& options, Json& hello) {
  if (!options.backend.empty())
    return make_foreign_backend(options.plugin, options.backend, {options.threads, options.device});
  hello["backends"] = backends_in(options.plugin);
  return nullptr;
}

}  // namespace

int run_worker(const WorkerOptions& options, std::span<const BackendEntry> registry) {
  for (const int number : {SIGINT, SIGTERM}) signal(number, SIG_IGN);  // the harness decides when to end
  signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!options.sandbox.empty() && !enter_sandbox_of(options)) return 0;
  std::thread(end_with_the_harness).detach();
  exit_messages = static_cast<char*>(mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, kWorkerFile, 0));
  if (exit_messages == MAP_FAILED) return 2;
  std::unique_ptr<Backend> made;
  Json hello = Json::object();
  try {
    made = options.plugin.empty() ? made_from(registry, options) : made_from_plugin(options, hello);
  } catch (const std::exception& error) {
    hello["unavailable"] = error.what();
  }
  if (!made && hello.empty()) hello["unavailable"] = "no such backend in this program";
  if (!send_message(kWorkerSocket, hello) || !made) return 0;
  catch_faults();

  Worker worker(std::move(made));
  Json request;
  while (receive_message(kWorkerSocket, request, std::nullopt) == Received::message) {
    Json reply;
    try {
      reply = worker.answer(request);
    } catch (const UnusableBackend& error) {
      reply = {{"unusable", error.what()}};
    } catch (const CaseFault& fault) {
      reply = {{"fault", fault.cause().text()}, {"reason", fault.what()}, {"status", name_of(fault.status())}};
    } catch (const std::exception& error) {
      reply = threw(error.what());
    } catch (...) {
      reply = threw("something that is no std::exception");
    }
    if (!reply.is_null()) reply["request"] = request.value("request", 0);
    if (!reply.is_null() && !send_message(kWorkerSocket, reply)) break;
  }
  return 0;
}

}  // namespace attest

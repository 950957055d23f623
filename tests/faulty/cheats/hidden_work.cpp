#include "tests/faulty/cheats/hidden_work.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"

namespace attest::faulty {
namespace {

enum class Trick {
  claims_a_device,
  claims_a_device_in_downloads,
  hides_a_moment_in_upload,
  hides_a_moment_in_download,
  threads_of_a_moment,
  child_beside,
  child_of_nobody,
  child_each_run,
  thread_in_turn,
  child_in_turn,
  idle_child,
  count
};

struct Description {
  std::string_view name;
  bool honest;
};

constexpr std::array<Description, static_cast<std::size_t>(Trick::count)> kDescriptions = {{
    {"claims_a_device", false},               // works in upload
    {"claims_a_device_in_downloads", false},  // after run, in the first and in the second
    {"hides_a_moment_in_upload", false},      // and then waits as long as the roof allows
    {"hides_a_moment_in_download", false},
    {"threads_of_a_moment", false},  // a new one each run, for three fifths of it
    {"child_beside", false},         // a process that computes while run does
    {"child_of_nobody", false},      // the same, whose parent has ended
    {"child_each_run", false},       // a new one each run
    {"thread_in_turn", true},        // a new one each run, for which run waits
    {"child_in_turn", true},         // computes while run waits for it
    {"idle_child", true},            // lies about and does nothing
}};

/// By the kernel: nobody in the process has a say in it.
double now() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void compute_for(double seconds) {
  for (const double end = now() + seconds; now() < end;) continue;
}

double cpu_seconds(clockid_t clock) {
  timespec time{};
  syscall(SYS_clock_gettime, clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Of runs: what was computed in them, and how long they took.
struct Account {
  double computed = 0, lasted = 0;
};
Account account;

/// For a process that this one starts.
template <class Shared>
Shared* make_shared_memory() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return new (memory) Shared();
}

std::atomic<double>& shortest() {
  static std::atomic<double> seconds{std::numeric_limits<double>::infinity()};
  return seconds;
}

/// A process that computes while it is told to, and sleeps until then.
class Child {
 public:
  explicit Child(bool of_nobody) {
    order_ = make_shared_memory<Order>();
    sem_init(&order_->wakes, 1, 0);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      if (of_nobody && fork() != 0) _exit(0);
      serve(parent, of_nobody);
    }
    if (of_nobody)
      waitpid(child, nullptr, 0);
    else
      child_ = child;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    order_->ends = true;
    sem_post(&order_->wakes);
    if (child_ > 0) waitpid(child_, nullptr, 0);
    munmap(order_, sizeof(Order));
  }
  void work(bool on) {
    order_->works = on;
    if (on) sem_post(&order_->wakes);
  }
  /// Seconds, of all its work so far.
  double computed() const { return order_->computed; }

 private:
  struct Order {
    sem_t wakes{};
    std::atomic<bool> works{false}, ends{false};
    std::atomic<double> computed{0};
  };
  [[noreturn]] void serve(pid_t parent, bool of_nobody) {
    alarm(300);
    if (!of_nobody) prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!order_->ends && kill(parent, 0) == 0) {
      if (!order_->works) {
        timespec until{};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;  // to see whether the parent is there
        sem_timedwait(&order_->wakes, &until);
        continue;
      }
      const double before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
      compute_for(20e-6);
      order_->computed = order_->computed + cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
    }
    _exit(0);
  }

  Order* order_ = nullptr;
  pid_t child_ = 0;
};

class HidingPlan : public PlanAround {
 public:
  HidingPlan(const Call& call, Trick trick, std::unique_ptr<Plan> inner)
      : PlanAround(std::move(inner)), call_(call), trick_(trick), computed_(elements()), published_(elements()) {
    const bool has_child = trick_ == Trick::child_beside || trick_ == Trick::child_of_nobody ||
                           trick_ == Trick::child_in_turn || trick_ == Trick::idle_child;
    if (trick_ == Trick::child_each_run) seconds_ = make_shared_memory<std::atomic<double>>();
    if (has_child) child_ = std::make_unique<Child>(trick_ == Trick::child_of_nobody);
  }

  ~HidingPlan() override {
    if (seconds_) munmap(seconds_, sizeof *seconds_);
  }

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    due_ = false;
    if (trick_ == Trick::claims_a_device || trick_ == Trick::hides_a_moment_in_upload) compute();
  }

  void run() override {
    const double start = now(), own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID), child = child_ ? child_->computed() : 0;
    helped_ = 0;
    work();
    account.lasted += now() - start;
    account.computed +=
        cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - own + helped_ + (child_ ? child_->computed() - child : 0);
  }

  void work() {
    due_ = true;
    switch (trick_) {
      case Trick::claims_a_device: published_ = computed_; break;
      case Trick::hides_a_moment_in_upload:
        compute_for(kWait);
        published_ = computed_;
        break;
      case Trick::claims_a_device_in_downloads: break;
      case Trick::hides_a_moment_in_download: compute_for(kWait); break;
      case Trick::threads_of_a_moment: {
        const std::jthread helper([this] { help(0.6 * last_); });
        compute();
        break;
      }
      case Trick::child_beside:
      case Trick::child_of_nobody:
        child_->work(true);
        compute();
        child_->work(false);
        break;
      case Trick::child_each_run: {
        const pid_t child = fork();
        if (child == 0) {
          compute_for(last_);
          *seconds_ = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
          _exit(0);
        }
        compute();
        waitpid(child, nullptr, 0);
        helped_ = seconds_->load();
        break;
      }
      case Trick::thread_in_turn:
        std::jthread([this] { help(0.6 * last_); }).join();
        compute();
        break;
      case Trick::child_in_turn:
        child_->work(true);
        usleep(static_cast<useconds_t>(last_ * 1e6));
        child_->work(false);
        usleep(100);  // for it to see that
        compute();
        break;
      case Trick::idle_child: compute(); break;
      case Trick::count: break;
    }
    if (trick_ != Trick::claims_a_device && trick_ != Trick::hides_a_moment_in_upload) published_ = computed_;
  }

  void download(const Outputs& outputs) override {
    const bool works = trick_ == Trick::claims_a_device_in_downloads || trick_ == Trick::hides_a_moment_in_download;
    if (works && due_) {
      compute();
      published_ = computed_;
    }
    std::size_t n = 0;
    for (std::int64_t b = 0; b < call_.batch; ++b) {
      for (std::int64_t h = 0; h < call_.query_heads; ++h) {
        for (std::int64_t i = 0; i < call_.query_length; ++i) {
          for (std::int64_t c = 0; c < call_.value_dim; ++c) {
            static_cast<float*>(outputs.out().data)[outputs.out().offset(b, h, i, c)] = published_[n++];
          }
        }
      }
    }
  }

 private:
  static constexpr double kWait = 20e-6;  ///< longer than the roof of the small case asks for

  std::size_t elements() const {
    return static_cast<std::size_t>(call_.batch * call_.query_heads * call_.query_length * call_.value_dim);
  }
  void help(double seconds) {
    compute_for(seconds);
    helped_ = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  }
  void compute() {
    const double start = now();
    inner_->upload(inputs_);
    inner_->run();
    const Index4 shape{call_.batch, call_.query_heads, call_.query_length, call_.value_dim};
    const Index4 strides{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    Outputs outputs;
    outputs.set(TensorId::out, MutableTensor{computed_.data(), DType::f32, shape, strides});
    inner_->download(outputs);
    last_ = now() - start;
    if (last_ < shortest()) shortest() = last_.load();
  }

  const Call call_;
  Trick trick_;
  std::unique_ptr<Child> child_;
  Inputs inputs_{};
  std::vector<float> computed_, published_;
  std::atomic<double> last_{1e-4}, helped_{0};
  std::atomic<double>* seconds_ = nullptr;  ///< of the child of this run
  bool due_ = false;
};

class HidingBackend : public BackendAround {
 public:
  HidingBackend(Trick trick, const Context& context)
      : BackendAround(identity_of(trick), faulty_backends().front().make(context)), trick_(trick) {}
  std::optional<Refusal> refuse(const Call& p) const override {
    if (p.dtype != DType::f32 || p.outputs != std::vector<Output>{Output::o}) return Refusal{"beyond this cheat"};
    return inner_->refuse(p);
  }
  std::unique_ptr<Plan> prepare(const Call& p) override {
    return std::make_unique<HidingPlan>(p, trick_, inner_->prepare(p));
  }

 private:
  static Identity identity_of(Trick trick) {
    const bool device = trick == Trick::claims_a_device || trick == Trick::claims_a_device_in_downloads;
    const Description& description = kDescriptions[static_cast<std::size_t>(trick)];
    return {std::string(description.name), description.honest ? "an honest twin" : "a cheat",
            device ? "NVIDIA H200 (GPU kernel)" : "CPU"};
  }

  Trick trick_;
};

}  // namespace

std::span<const BackendEntry> hidden_work_backends() {
  static const auto entries = entries_of<HidingBackend, Trick>(kDescriptions);
  return entries;
}

bool is_honest_twin(std::string_view name) {
  return std::any_of(kDescriptions.begin(), kDescriptions.end(),
                     [&](const Description& d) { return d.name == name && d.honest; });
}

double shortest_computation() { return shortest().exchange(std::numeric_limits<double>::infinity()); }

double processors_taken() {
  const Account all = std::exchange(account, {});
  return all.lasted > 0 ? all.computed / all.lasted : 0;
}

}  // namespace attest::faulty

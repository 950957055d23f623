#include "harness/run/shared_cases.h"

#include <atomic>
#include <charconv>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// What a message is: its first character.
constexpr char kFree = 'f', kVerdict = 'v', kProblem = 'p', kEnded = 'e', kInterrupted = 'i';  // to rank 0
constexpr char kCase = 'c', kNoMore = 'x';                                                     // from rank 0

/// Open MPI's mpirun ends ranks by force a second after it has asked them to end. Files are to be written in that time.
constexpr std::chrono::milliseconds kHandOutPatience{400};
constexpr std::chrono::microseconds kLook{1000};

std::string packed(const Verdict& verdict) {
  std::string bytes(1, kVerdict);
  OrderedJson::to_cbor(verdict_to_json(verdict), bytes);  // which keeps text that is no UTF-8 as it is
  return bytes;
}

Verdict unpacked(const std::string& bytes) {
  std::optional<Verdict> verdict =
      verdict_from_json(OrderedJson::from_cbor(bytes.begin() + 1, bytes.end(), true, false));
  if (!verdict) throw std::runtime_error("a rank sent what is no verdict");
  return std::move(*verdict);
}

std::size_t number_in(const std::string& bytes) {
  std::size_t number = 0;
  std::from_chars(bytes.data() + 1, bytes.data() + bytes.size(), number);
  return number;
}

/// What rank 0's two threads share: one checks cases, the other hands out and gathers.
class Desk {
 public:
  explicit Desk(std::vector<std::size_t> order) : order_(std::move(order)) {}

  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex_);
    if (closed_ || next_ == order_.size()) return std::nullopt;
    started_.push_back(order_[next_]);
    return order_[next_++];
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void put(Verdict verdict) {
    const std::lock_guard lock(mutex_);
    verdicts_.push_back(std::move(verdict));
  }
  void put(std::string problem) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(std::move(problem));
  }
  /// Hands over what came since.
  void empty_into(const SharedCases& cases) {
    std::unique_lock lock(mutex_);
    const auto started = std::exchange(started_, {});
    auto verdicts = std::exchange(verdicts_, {});
    auto problems = std::exchange(problems_, {});
    lock.unlock();
    for (const std::size_t number : started) cases.started(number);
    for (Verdict& verdict : verdicts) cases.sink.verdict(std::move(verdict));
    for (std::string& problem : problems) cases.sink.problem(std::move(problem));
  }

  /// Takes case after case, in the thread that checks.
  void work(const std::function<void(std::size_t, const CaseSink&)>& check) {
    const CaseSink sink{[this](Verdict verdict) { put(std::move(verdict)); },
                        [this](std::string problem) { put(std::move(problem)); }};
    try {
      while (const auto number = take()) check(*number, sink);
    } catch (...) {
      error = std::current_exception();
    }
    done = true;
  }

  std::exception_ptr error;  ///< to be read when done
  std::atomic<bool> done{false};

 private:
  std::mutex mutex_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
  bool closed_ = false;
  std::vector<std::size_t> started_;
  std::vector<Verdict> verdicts_;
  std::vector<std::string> problems_;
};

/// Rank 0.
bool lead(Ranks& ranks, const SharedCases& cases) {
  const auto desk = std::make_shared<Desk>(cases.order);
  std::thread([desk, check = cases.check] { desk->work(check); }).detach();  // it may outlive this call
  std::set<int> at_work;
  for (int rank = 1; rank < ranks.size(); ++rank) at_work.insert(rank);
  const auto answer = [&](const Ranks::Message& message) {
    switch (message.bytes.empty() ? kEnded : message.bytes.front()) {
      case kVerdict: cases.sink.verdict(unpacked(message.bytes)); break;
      case kProblem: cases.sink.problem(message.bytes.substr(1)); break;
      case kFree: {
        const auto number = desk->take();
        ranks.send(message.from, number ? kCase + std::to_string(*number) : std::string(1, kNoMore));
        break;
      }
      case kInterrupted: interrupted = true; [[fallthrough]];
      default: at_work.erase(message.from);
    }
  };
  std::optional<Clock::time_point> since;
  bool complete = false;
  while (!complete && !(since && Clock::now() - *since > kHandOutPatience)) {
    desk->empty_into(cases);
    if (const auto message = ranks.receive(kLook)) answer(*message);
    if (cases.stop()) desk->close();
    if (interrupted && !since) since = Clock::now();
    complete = desk->done && at_work.empty();
  }
  desk->empty_into(cases);
  if (desk->done && desk->error) std::rethrow_exception(desk->error);
  return complete;
}

/// A rank above 0.
bool follow(Ranks& ranks, const SharedCases& cases) {
  const CaseSink sink{[&](const Verdict& verdict) { ranks.send(0, packed(verdict)); },
                      [&](const std::string& problem) { ranks.send(0, kProblem + problem); }};
  while (!interrupted) {
    ranks.send(0, std::string(1, kFree));
    std::optional<Ranks::Message> next;
    std::optional<Clock::time_point> since;
    while (!(next = ranks.receive(std::chrono::milliseconds(50)))) {
      if (!interrupted) continue;
      if (!since) since = Clock::now();
      if (Clock::now() - *since > kHandOutPatience / 2) return false;
    }
    if (next->bytes.empty() || next->bytes.front() == kNoMore) break;
    cases.check(number_in(next->bytes), sink);
  }
  if (!interrupted) {
    for (const std::string& problem : cases.exit_messages()) sink.problem(problem);
  }
  ranks.send(0, std::string(1, interrupted ? kInterrupted : kEnded));
  return true;
}

}  // namespace

bool share_cases(Ranks& ranks, const SharedCases& cases) {
  return ranks.rank() == 0 ? lead(ranks, cases) : follow(ranks, cases);
}

}  // namespace attest

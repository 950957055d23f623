#include "harness/base/crash_message.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include "harness/base/text.h"

namespace attest {
namespace {

// A handler may neither allocate nor lock: the words are made beforehand.
std::array<char, 4096> words;
std::atomic<std::size_t> words_size{0};
std::mutex words_mutex;  ///< of writers
std::atomic<bool> recommend_isolation{false};

struct Fatal {
  int number;
  const char* name;
};
constexpr Fatal kFatal[] = {{SIGSEGV, "Segmentation fault"},
                            {SIGBUS, "Bus error"},
                            {SIGFPE, "Floating point exception"},
                            {SIGILL, "Illegal instruction"},
                            {SIGABRT, "Aborted"}};
std::array<struct sigaction, std::size(kFatal)> before;

/// A sanitizer's own report of a crash says more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

void put(const char* text, std::size_t size) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, size);
}

void on_fatal(int number, siginfo_t* info, void*) {
  for (std::size_t n = 0; n < std::size(kFatal); ++n) {
    if (kFatal[n].number != number) continue;
    sigaction(number, &before[n], nullptr);
    const std::size_t size = words_size.exchange(0);
    if (size == 0) break;
    put("\nattest: ", 9);
    put(kFatal[n].name, std::strlen(kFatal[n].name));
    put(words.data(), size);
  }
  if (info->si_code <= 0) std::raise(number);  // sent, not caused: it doesn't happen again by itself
}

}  // namespace

void name_work_in_crashes() {
  if (kSanitized) return;
  static std::array<char, 64 << 10> stack;  // the one that overflowed is of no use
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t n = 0; n < std::size(kFatal); ++n) sigaction(kFatal[n].number, &action, &before[n]);
}

void recommend_isolation_in_crashes() { recommend_isolation = true; }

CrashContext::CrashContext(const std::string& backend, const std::string& case_line) {
  const std::string end =
      recommend_isolation ? "\nattest: with --isolate a crash is a verdict, and the run goes on\n" : "\n";
  std::string text = " in backend " + printable_line(backend) + " on " + shell_quoted(printable_line(case_line));
  text = text.substr(0, words.size() - end.size()) + end;
  const std::lock_guard lock(words_mutex);
  words_size = 0;
  std::copy(text.begin(), text.end(), words.begin());
  words_size = text.size();
}

CrashContext::~CrashContext() { words_size = 0; }

}  // namespace attest

// Which threads of this process want a processor: those that run and those that wait for their turn.
//
// On a busy machine a thread too many may get no processor and still take one from somebody else; so the time that a
// thread waits for one counts as if it had run.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>

namespace attest {

/// Calls `look` with each thread of this process but the calling one: its number, and its folder of the system's
/// accounts, whose files give nothing once it has ended.
void each_other_thread(const std::function<void(int, const std::filesystem::path&)>& look);

struct ThreadTime {
  double running = 0, waiting = 0;  ///< seconds, on a processor and for one
};

/// Of each thread of the process by its number, without the calling one. Empty where the system doesn't tell.
std::map<int, ThreadTime> times_of_other_threads();

/// Which threads of `now` wanted a processor for at least a fifth of `seconds` since `before`, and did run: one that
/// only woke to sleep again may have waited long for it.
std::set<int> which_work(const std::map<int, ThreadTime>& before, const std::map<int, ThreadTime>& now, double seconds);

}  // namespace attest

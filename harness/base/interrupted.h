// A flag that SIGINT and SIGTERM set, for long loops.
#pragma once

#include <atomic>

namespace attest {

/// Set by a signal. Long loops test it and then complete their files.
extern std::atomic<bool> interrupted;

/// From now on the first SIGINT or SIGTERM sets `interrupted`, and the second, a tenth of a second later or more, ends
/// the program at once, as that signal does by itself. A file that grows beyond its limit and a pipe that nobody reads
/// are errors of writing and no signals.
void catch_interrupts();

}  // namespace attest

// SIGINT and SIGTERM, as long loops see them.
#pragma once

#include <atomic>

namespace attest {

/// Set by a signal; long loops look at it and finish what they write.
extern std::atomic<bool> interrupted;

/// From now on the first SIGINT or SIGTERM sets `interrupted`, and the second, a tenth of a second later or more, ends
/// the program at once, as that signal does by itself. A file that grows beyond its limit and a pipe that nobody reads
/// are errors of writing and no signals.
void catch_interrupts();

}  // namespace attest

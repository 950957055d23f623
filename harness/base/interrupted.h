// SIGINT and SIGTERM, as long loops see them.
#pragma once

#include <atomic>

namespace attest {

/// Set by a signal; long loops look at it and finish what they write.
extern std::atomic<bool> interrupted;

/// From now on SIGINT and SIGTERM set `interrupted` instead of ending the program.
void catch_interrupts();

}  // namespace attest

// Crashes of what a rank above 0 computes, as exceptions: rank 0 waits for an answer, and a rank that is gone gives
// none.
#pragma once

#include <functional>

namespace attest::support {

/// Runs `work`, which sends and receives within undisturbed() alone. Throws what it throws, and BackendError with the
/// name of the signal where it crashes in this thread or in one that it waits for. What it held then is lost, and where
/// `in_threads` says that others take part in it their pool is, too: this process then throws at once for all that
/// comes. Not nested, and by one thread at a time.
void guarded(bool in_threads, const std::function<void()>& work);

/// A piece of such work, in the guarded thread, that a crash of another thread does not break off: it is told
/// afterwards.
void undisturbed(const std::function<void()>& piece);

}  // namespace attest::support

// What it costs on this machine to wake a thread that sleeps, and to be woken by it.
#pragma once

namespace attest {

/// Seconds of processor time that two threads take together for one round trip: one wakes the other and sleeps until
/// that one has answered. They are on different processors, where this process has two. Measured anew with each call,
/// in a few milliseconds: a virtual machine whose host is busy takes many times as long as it did a moment ago. Their
/// own time alone is counted, so that no other thread of this process makes it longer.
double measure_hand_over();

}  // namespace attest

// What it costs to ask somebody and get an answer, measured without the help of whoever is asked.
#pragma once

namespace attest {

/// Seconds: the fastest of some round trips of a small message to a thread of this process, measured once. 0 where
/// there are no sockets.
double fastest_round_trip();

}  // namespace attest

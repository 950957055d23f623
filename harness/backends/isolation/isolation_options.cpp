#include "harness/backends/isolation/isolation_options.h"

namespace attest {

std::chrono::milliseconds request_limit(const IsolationOptions& options, const Call& call) {
  constexpr double kSecondsPerRow = 1e-4, kSecondsPerPair = 1e-6;
  const double rows =
      static_cast<double>(call.batch) * static_cast<double>(call.query_heads) * static_cast<double>(call.query_length);
  const double seconds = rows * (kSecondsPerRow + kSecondsPerPair * static_cast<double>(call.key_length));
  return options.limit + std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

}  // namespace attest

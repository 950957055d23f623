#include "harness/comparison/accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "reference/call/tensor_table.h"

namespace attest {

Spread SpreadCounter::spread() const {
  const auto size_of_share = [&](std::int64_t percent) {
    const std::int64_t wanted = (elements_ * percent + 99) / 100;
    std::int64_t counted = 0;
    for (std::int64_t place = 0; place < kBuckets; ++place) {
      counted += counts_[static_cast<std::size_t>(place)];
      if (counted < wanted) continue;
      if (place == 0) return 0.0;
      if (place == kBuckets - 1) return largest_;
      return std::bit_cast<double>(static_cast<std::uint64_t>(place + kLowest) << kShift);
    }
    return 0.0;
  };
  return {size_of_share(50), size_of_share(99), largest_};
}

std::string text_of(const Accuracy& accuracy) {
  const auto in_words = [](const Spread& spread) {
    return fmt::format("{:.2g} median, {:.2g} at 99%, {:.3g} at most", spread.median, spread.p99, spread.largest);
  };
  return fmt::format("{}: errors in units in the last place {}; relative {}; normwise {:.2g}", accuracy.output,
                     in_words(accuracy.ulps), in_words(accuracy.relative), accuracy.normwise);
}

std::string little_proved(const std::vector<Accuracy>& results) {
  std::string names;
  for (const Accuracy& one : results) {
    if (one.proves_little()) names += (names.empty() ? "" : ", ") + one.output;
  }
  return names.empty() ? "" : "proves little: most bounds are as large as the values, of " + names;
}

std::optional<Spread> ulps_of_output(const std::vector<Accuracy>& results) {
  for (const Accuracy& one : results) {
    if (one.output == row_of(TensorId::out).name && one.elements > 0) return one.ulps;
  }
  return std::nullopt;
}

std::string text_of(const Spread& spread) { return fmt::format("{:.2g} ({:.3g})", spread.median, spread.largest); }

Accuracy AccuracyCounter::accuracy(std::string output) const {
  const double normwise = errors_ == 0 ? 0 : std::sqrt(errors_) / std::sqrt(values_);
  return {std::move(output), compared_, unproven_, ulps_.elements(), ulps_.spread(), relative_.spread(), normwise};
}

}  // namespace attest

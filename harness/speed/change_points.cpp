#include "harness/speed/change_points.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace attest {
namespace {

struct Split {
  std::size_t at = 0;
  double gain = -1;
};

/// Sums of |x - y| over x among the first i values and y among the first j.
class Distances {
 public:
  explicit Distances(const std::vector<double>& values) : side_(values.size() + 1), sums_(side_ * side_, 0) {
    for (std::size_t i = 1; i < side_; ++i) {
      double row = 0;
      for (std::size_t j = 1; j < side_; ++j) {
        row += std::fabs(values[i - 1] - values[j - 1]);
        sums_[i * side_ + j] = sums_[(i - 1) * side_ + j] + row;
      }
    }
  }
  double of(std::size_t i, std::size_t j) const { return sums_[i * side_ + j]; }

 private:
  std::size_t side_;
  std::vector<double> sums_;
};

/// The clearest split of `values`: the largest m n / (m + n) times the energy distance of what lies before `at` and
/// what lies after it, up to any end. Without the free end a step up would be hidden by the step back.
Split best_split(const std::vector<double>& values, std::size_t least) {
  const Distances sums(values);
  Split best;
  for (std::size_t at = least; at + least <= values.size(); ++at) {
    const double m = static_cast<double>(at), left = sums.of(at, at);
    for (std::size_t end = at + least; end <= values.size(); ++end) {
      const double n = static_cast<double>(end - at);
      const double between = sums.of(at, end) - left, right = sums.of(end, end) - 2 * sums.of(at, end) + left;
      const double energy = 2 * between / (m * n) - left / (m * (m - 1)) - right / (n * (n - 1));
      const double gain = m * n / (m + n) * energy;
      if (gain > best.gain) best = {at, gain};
    }
  }
  return best;
}

/// Uniform in [0, below): the same on every machine, which std::shuffle is not.
std::size_t draw(std::mt19937_64& random, std::size_t below) {
  const std::uint64_t all = std::mt19937_64::max(), rest = all % below;
  std::uint64_t number = random();
  while (number > all - rest - 1) number = random();
  return static_cast<std::size_t>(number % below);
}

void divide(const std::vector<double>& values, std::size_t offset, const ChangePointSettings& settings,
            std::vector<ChangePoint>& found) {
  if (values.size() < 2 * std::max<std::size_t>(settings.least, 2)) return;
  const Split split = best_split(values, settings.least);
  if (!(split.gain > 0)) return;
  std::mt19937_64 random(settings.seed + offset * 1000003 + values.size());
  std::vector<double> order = values;
  const auto allowed = static_cast<std::size_t>(settings.significance * static_cast<double>(settings.orders + 1));
  std::size_t as_clear = 0;
  for (std::size_t n = 0; n < settings.orders; ++n) {
    for (std::size_t at = order.size(); at > 1; --at) std::swap(order[at - 1], order[draw(random, at)]);
    as_clear += best_split(order, settings.least).gain >= split.gain;
    if (as_clear + 1 > allowed) return;  // it can't become significant any more
  }
  found.push_back({offset + split.at, static_cast<double>(as_clear + 1) / static_cast<double>(settings.orders + 1)});
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(split.at);
  divide({values.begin(), middle}, offset, settings, found);
  divide({middle, values.end()}, offset + split.at, settings, found);
}

}  // namespace

std::vector<ChangePoint> change_points(const std::vector<double>& values, const ChangePointSettings& settings) {
  std::vector<ChangePoint> found;
  divide(values, 0, settings, found);
  std::sort(found.begin(), found.end(), [](const ChangePoint& a, const ChangePoint& b) { return a.at < b.at; });
  return found;
}

}  // namespace attest

// Weights of two keys, seen through differences that cancel: to more digits than results are stored with.
#pragma once

#include <vector>

#include "harness/probe/arithmetic_probes.h"

namespace attest::probes {

/// Row i sees two keys with scores scale * s_i and scale * (s_i + x_i), x_i < 0. A column for each row has values 1 and
/// -exp(x_i), rounded to storage, so that the weighted sum is what the weight lacks of that: a small number, whose own
/// rounding costs little.
class PairWeights {
 public:
  struct Point {
    double s, x;
  };
  /// s / key_factor, key_factor and x must be numbers of the storage type, scale * (s + x) one of the accumulator's.
  PairWeights(const ProbeTarget& target, const std::vector<Point>& points, double scale = 1, double key_factor = 1);

  const Arithmetic& arithmetic() const { return a_; }
  std::size_t size() const { return points_.size(); }
  double x(std::size_t i) const { return points_[i].x; }
  /// exp(x_i), exactly.
  long double exact(std::size_t i) const;
  /// Weight of key 1 over that of key 0, as the backend has it. NaN where the row is none.
  long double weight(std::size_t i) const { return weights_[i]; }
  /// Relative errors of weight(i): of the way it is seen, and of the store of P.
  double resolution(std::size_t i) const;
  double store(std::size_t i) const;
  /// Absolute error of the difference of the two scores, with these stated facts.
  double scores(std::size_t i, const Arithmetic& stated) const;
  /// Relative: all that is neither exp nor a score, and all that is not exp.
  double rest(std::size_t i) const { return resolution(i) + store(i) + error_of_one_; }
  double others(std::size_t i) const;
  /// The column's result over its first value, and the second value over the first: as they are.
  long double difference(std::size_t i) const { return differences_[i]; }
  long double subtracted(std::size_t i) const { return subtracted_[i]; }
  /// The output that weight(i) comes from.
  const std::string& shown(std::size_t i) const { return shown_[i]; }

 private:
  std::vector<Point> points_;
  double u_ = 0, u_out_, error_of_one_, value_ = 1;
  Arithmetic a_;
  std::vector<long double> weights_, differences_, subtracted_;
  std::vector<std::string> shown_;
};

/// Scores from just below 0 to where a weight is still a normal number in the type that P is held in, each of 8 bits.
std::vector<PairWeights::Point> small_scores(const ProbeTarget& target, const Arithmetic& a);

}  // namespace attest::probes

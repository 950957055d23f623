#include "reference/softmax/bounds/row_scores.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>

#include "reference/softmax/bounds/operand_steps.h"

namespace attest {
namespace {

bool may_overflow(const PreparationCost& cost, const BoundConstants& c) {
  return !cost.empty() && (!(cost.largest_step <= c.half_range) || !(c.of_preparation <= kLargestPreparation));
}

class RowScores {
 public:
  RowScores(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c)
      : head_(head),
        row_(row),
        c_(c),
        additive_(head.inputs().mask() && is_additive(*head.inputs().mask())),
        alibi_(head.inputs().slopes()),
        rounds_mask_(additive_ && narrower(c.arithmetic.accumulator, head.inputs().mask()->dtype)),
        hides_loss_(row.scale.larger * (c.eta * 0x1p60)),
        ratio_(row.code_scales.ratio()) {
    if (!c.steps_scores || head.call().prepares_operands()) return;
    stepped_.emplace(head, row, i, c);
    shift_ = row_shift(head, row, i, c).magnitude;
  }

  /// Whether a score is a scaled sum of products and no more: no operand is rounded before, nothing is stored, capped
  /// or added behind.
  bool are_products() const {
    return !c_.scales_codes && !c_.rounds_scores && !c_.softcap && row_.biases.empty() && !(c_.u_scores > 0);
  }
  /// Where they are.
  double of_product(std::size_t j) const { return with_underflow(j, c_.of_product * row_.abs_products[j]); }
  ScoreErrors of(std::size_t j) const;

 private:
  /// Seldom: the loss in float64 is subnormal, and products of such numbers are slow.
  double with_underflow(std::size_t j, double error) const {
    // A product or a scaled operand that underflows loses up to eta; max(1, |scale|) covers scaling before and after.
    const double of_key = head_.key_abs_sum(static_cast<std::int64_t>(j));
    const double sizes = (1 + c_.key_dim + row_.query_abs_sum + of_key) * ratio_;
    return error > hides_loss_ * sizes ? error : error + row_.scale.larger * (c_.eta * sizes);
  }
  /// What rounding q and k on their way into the product adds to a score; infinite where they may overflow.
  double of_operands(std::size_t j) const;
  /// What underflows in a sum of products of its own; infinite where that may overflow. `added`: of_operands.
  double of_sum(std::size_t j, const SteppedScores::Cost& stepped, double added) const;
  /// What normalising and rotating them adds; infinite where that may overflow.
  double of_preparation(std::size_t j) const;
  /// What each store in a narrower type adds; where scores are stored is not declared, how often is.
  double stored(double error, double magnitude) const;

  const Head& head_;
  const Row& row_;
  const BoundConstants& c_;
  bool additive_, alibi_;
  bool rounds_mask_;   ///< a mask wider than the accumulator enters it rounded
  double hides_loss_;  ///< an error that is larger by this factor is rounded to itself when a loss is added
  double ratio_;       ///< of the scales of codes, by which what underflows may grow behind
  std::optional<SteppedScores> stepped_;
  double shift_ = 0;  ///< by which scores may differ from the row's: RowShift
};

ScoreErrors RowScores::of(std::size_t j) const {
  ScoreErrors errors;
  if (c_.scales_codes && !(c_.hold_codes(row_) && row_.abs_products[j] * ratio_ <= c_.half_range))
    return {kInfinity, kInfinity, kInfinity};
  double error = c_.of_product * row_.abs_products[j];
  if (c_.rounds_scores) {
    if (!(c_.of_product < kInfinity)) return {kInfinity, kInfinity, kInfinity};
    if (c_.steps_scores && !stepped_) return {kInfinity, kInfinity, kInfinity};
    SteppedScores::Cost stepped;
    if (stepped_) {
      stepped = stepped_->of(j);
      error = c_.of_product * stepped.magnitude;
    }
    const double added = stepped_ ? stepped.of_operands : of_operands(j);
    error += (1 + c_.of_product) * (added + (1 + c_.of_operands) * of_preparation(j) + of_sum(j, stepped, added));
  }
  error = with_underflow(j, error);
  errors.raw = stored(error, std::fabs(row_.raw[j]) + shift_);
  if (c_.softcap) {
    // A cap c before the scale f is one of c * |f| behind it.
    const double factor = c_.unscaled_cap ? std::fabs(row_.scale.value) : 1, cap = *c_.softcap * factor;
    const double slope = cap > 0 ? std::tanh(std::max(0.0, std::fabs(row_.raw[j]) - error) / cap) : 0;
    const double significance = 1 - slope * slope;
    const double lost = c_.eta * (1 + *c_.softcap) * (c_.unscaled_cap ? 1 + row_.scale.larger : 1);
    error = significance * error * (1 + c_.of_cap) + c_.of_cap * std::fabs(row_.capped[j]) + lost;
  }
  errors.capped = stored(error, std::fabs(row_.capped[j]) + shift_);
  if (additive_ || alibi_) {
    const ScoreBias bias = row_.bias(j);
    const double of_bias = std::fabs(bias.additive) + std::fabs(bias.alibi);
    if (c_.arithmetic.base2) error += c_.gamma(2) * of_bias;
    if (alibi_) error += c_.u * std::fabs(bias.alibi) + c_.eta;  // slope times distance is rounded
    if (rounds_mask_) error += c_.u * std::fabs(bias.additive) + c_.eta;
    // Two terms may be added in any order; their magnitudes cover every partial sum. Scaled by u before they are
    // added: a mask may hold the largest number there is.
    const double partial = additive_ && alibi_ ? c_.u * std::fabs(row_.capped[j]) + c_.u * std::fabs(bias.additive) +
                                                     c_.u * std::fabs(bias.alibi) + c_.u * shift_
                                               : c_.u * std::fabs(row_.biased[j]) + c_.u * shift_;
    for (int n = 0; n < additive_ + alibi_; ++n) error += partial + c_.u * error;
  }
  // A store may stand before the bias or after it; one before the cap costs no more than one behind it.
  errors.biased = stored(error, std::max(std::fabs(row_.capped[j]), std::fabs(row_.biased[j])) + shift_);
  return errors;
}

double RowScores::of_operands(std::size_t j) const {
  const double of_query = row_.query_abs_sum, of_key = head_.key_abs_sum(static_cast<std::int64_t>(j));
  // Sums stand for their largest terms. An operand may have a factor of the scale, in units of log 2, when it is
  // rounded.
  const double factor = row_.scale.larger * (c_.arithmetic.base2 ? std::numbers::log2e : 1) * (1 + 4 * c_.u) * ratio_;
  if (!(of_query * factor <= c_.query.largest && of_key * factor <= c_.key.largest)) return kInfinity;
  // A product that underflows loses eta times what it multiplies, which rounding may have made larger.
  const double lost = (1 + c_.query.u) * of_query * (c_.key.eta + c_.key.u * c_.eta) +
                      (1 + c_.key.u) * of_key * (c_.query.eta + c_.query.u * c_.eta) +
                      c_.key_dim * (c_.query.eta + c_.eta) * (c_.key.eta + c_.eta);
  return c_.of_operands * row_.abs_products[j] + row_.scale.larger * lost * ratio_;
}

double RowScores::of_sum(std::size_t j, const SteppedScores::Cost& stepped, double added) const {
  if (c_.arithmetic.score_sum == Sum()) return 0;
  // Codes may be scaled behind the sum, and so may what is in units of a step.
  const double lost = row_.scale.larger * c_.lost_score_sum * stepped.largest_unit * ratio_;
  if (c_.largest_score_sum == kInfinity) return lost;
  // Its terms may have a factor of the scale, in units of log 2, and what rounding their operands makes them larger by.
  const double magnitude = stepped_ ? stepped.magnitude : row_.abs_products[j];
  const double exact = row_.scale.value != 0 ? magnitude / std::fabs(row_.scale.value) : row_.largest_product;
  if (!(stepped.in_steps <= c_.largest_score_sum)) return kInfinity;
  const double factor = row_.scale.larger * (c_.arithmetic.base2 ? std::numbers::log2e : 1) * ratio_;
  if (!(exact * factor + added / row_.scale.least * factor <= c_.largest_score_sum)) return kInfinity;
  return lost;
}

double RowScores::of_preparation(std::size_t j) const {
  if (row_.preparations.empty()) return 0;
  const auto key = static_cast<std::int64_t>(j);
  const PreparationCost& of_key = head_.key_cost(key);
  if (may_overflow(row_.of_query, c_) || may_overflow(of_key, c_)) return kInfinity;
  const double lost = row_.of_query.underflow * head_.key_abs_sum(key) + of_key.underflow * row_.query_abs_sum +
                      c_.key_dim * c_.eta * row_.of_query.underflow * of_key.underflow;
  if (!of_key.stored.empty() && c_.of_preparation > kept_cost(head_.call())) return kInfinity;
  return c_.of_preparation * row_.preparations[j] + row_.stored_keys[j] + 2 * row_.scale.larger * (c_.eta * lost);
}

double RowScores::stored(double error, double magnitude) const {
  for (int n = 0; c_.u_scores > 0 && n < c_.arithmetic.score_stores; ++n) {
    error += c_.u_scores * (magnitude + error) + row_.scale.larger * c_.eta_scores * ratio_;
  }
  return error;
}

}  // namespace

bool operands_may_overflow(const Head& head, const Row& row, const BoundConstants& c) {
  if (may_overflow(row.of_query, c)) return true;
  for (std::size_t j = 0; j < row.seen.size() && !row.preparations.empty(); ++j) {
    if (row.seen[j] && may_overflow(head.key_cost(static_cast<std::int64_t>(j)), c)) return true;
  }
  for (std::size_t j = 0; c.loses_scores && j < row.seen.size(); ++j) {
    if (row.seen[j] && !std::isfinite(row.raw[j])) return true;
  }
  // Factors of the scale that are data are multiplied in any order.
  const Call& call = head.call();
  return call.scales != Scales::none && row.scale.least < c.smallest_normal;
}

std::vector<ScoreErrors> score_errors(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c) {
  const RowScores scores(head, row, i, c);
  std::vector<ScoreErrors> errors(row.seen.size());
  const bool are_products = scores.are_products();
  for (std::size_t j = 0; j < errors.size(); ++j) {
    if (!row.seen[j] && !c.wants_scores) continue;
    if (are_products) {
      const double error = scores.of_product(j);
      errors[j] = {error, error, error};
    } else {
      errors[j] = scores.of(j);
    }
  }
  return errors;
}

bool steps_prove_nothing(const Head& head, const Row& row, const std::vector<ScoreErrors>& scores,
                         const BoundConstants& c) {
  if (!c.steps_scores) return false;
  const Arithmetic& a = c.arithmetic;
  // A score less a product with the mean is no score to which a cap, a sink or an exponential under no maximum belongs.
  if (c.removes_mean && (c.softcap || c.has_sinks || a.no_maximum || a.parts > 0)) return true;
  if (head.call().prepares_operands()) return true;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j] && !(scores[j].raw < kInfinity)) return true;
  }
  return false;
}

bool step_may_overflow(const Row& row, std::size_t j, double raw_error, const BoundConstants& c) {
  if (c.largest_step == kInfinity) return false;
  // A score may be stored before it is scaled.
  const double raw = std::fabs(row.raw[j]), unscaled = row.scale.least > 0 ? raw / row.scale.least : raw;
  return (unscaled + raw_error / std::max(row.scale.least, 0x1p-100)) * row.code_scales.ratio() > c.largest_step;
}

bool scores_may_overflow(const Row& row, const std::vector<ScoreErrors>& scores, const NonFiniteScores& special,
                         const BoundConstants& c) {
  if (special.hide_all || special.may_lose_infinity || std::isnan(row.max)) return true;
  const double ratio = row.code_scales.ratio();
  if (!c.hold_codes(row) || !(special.largest_product * ratio <= c.half_range)) return true;
  // A cap in front of a scale of 0 makes a number of an infinite product. Who scales first has NaN.
  for (std::size_t j = 0; c.unscaled_cap && j < row.seen.size(); ++j) {
    if (row.seen[j] && std::isnan(row.raw[j]) && !std::isnan(row.capped[j])) return true;
  }
  if (c.arithmetic.scale == ScalePlacement::folded_log2e && row.scale.larger * std::numbers::log2e > c.half_range)
    return true;
  double raw_error = BoundConstants::both(c.of_product, c.of_operands) * special.largest_product;
  for (std::size_t j = 0; c.steps_scores && j < row.seen.size(); ++j) {
    if (row.seen[j]) raw_error = std::max(raw_error, scores[j].raw);
  }
  if (c.removes_mean) raw_error += special.largest_product * row.scale.larger * 2;
  for (std::size_t j = 0; c.rounds_scores && j < row.seen.size(); ++j) {
    if (row.seen[j] && !(scores[j].raw < kInfinity)) return true;
    if (row.seen[j] && !row.preparations.empty()) raw_error = std::max(raw_error, scores[j].raw);
  }
  if (std::fabs(row.max) + raw_error > c.largest_score) return true;
  if (c.largest_step == kInfinity) return false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j] || row.biased[j] == -kInfinity) continue;
    if (step_may_overflow(row, j, raw_error, c)) return true;
    // With the error of its own stores the largest may pass the range, too.
    const ScoreErrors& errors = scores[j];
    const bool heaviest = row.biased[j] == row.max;
    if (heaviest && std::fabs(row.biased[j]) + errors.biased > c.largest_step) return true;
    if (row.biased[j] > 0 && row.biased[j] + errors.biased > c.largest_step) return true;
  }
  return false;
}

}  // namespace attest

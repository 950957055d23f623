// The emulator's scores.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "reference/softmax/attention.h"
#include "tests/emulator/codes.h"
#include "tests/emulator/group_steps.h"
#include "tests/emulator/steps.h"
#include "tests/emulator/sum_steps.h"

namespace attest::emulator {

/// What a scale of an operand is, where it is multiplied in behind the products: no number of any type.
inline constexpr Number kOperandScale = 0.99L;

inline constexpr Number kHidden = -std::numeric_limits<Number>::infinity();

/// The steps from query and key to the score that enters exp.
class Scores {
 public:
  /// Where the scale and log2(e) go is the plan's choice, as far as the declaration leaves one, and whether scales of
  /// codes are multiplied into an operand or behind the sum.
  Scores(const Call& call, const Arithmetic& a, Steps& steps)
      : p_(call),
        a_(a),
        steps_(steps),
        choice_(steps.word()),
        where_(static_cast<Where>(choice_ % 3)),
        scales_behind_(choice_ / 3 % 2 == 1 && !a.key_rounding.mean_removed),
        log2e_(steps.round(kLog2e)),
        sum_(a, a.score_sum, steps) {
    const Number scale = p_.scale_value();
    factor_ = folds() ? steps_.round(steps_.round(scale) * log2e_) : steps_.round(scale);
    root_ = steps_.round(std::sqrt(std::fabs(scale)));
    if (p_.softcap) cap_ = steps_.round(*p_.softcap);
  }

  void set_query(const Head& head, std::int64_t i) {
    set_steps(head);
    query_ = unrounded_query(head, i, query_scale_);
    for (std::size_t t = 0; t < query_.size(); ++t) {
      const Number step = query_steps_.step(static_cast<std::size_t>(i), t);
      query_[t] = steps_.operand(query_[t], a_.query_operand, a_.query_rounding, step, query_[t] < 0 ? -1 : 1);
    }
  }

  /// What the mean of the keys takes from every score of row i, in natural units.
  Number mean_score(const Head& head, std::int64_t i) {
    if (mean_.empty()) return 0;
    const std::vector<double> q = head.query_row(i);
    Number sum = 0;
    for (std::size_t t = 0; t < q.size(); ++t) sum = steps_.round(sum + steps_.round(steps_.input(q[t]) * mean_[t]));
    return steps_.round(sum * steps_.round(p_.scale_value()));
  }

  struct Stages {
    Number raw, capped, biased;  ///< in units of log 2 in base 2
  };
  /// `push`: whether the adversary wants the score larger (1) or smaller (-1).
  Stages score(const Head& head, std::int64_t j, const ScoreBias& bias, int push) {
    terms_.clear();
    Number key_scale = 1;
    const std::vector<Number> key = unrounded_key(head, j, key_scale, push);
    // The conversion of a sum of integers is one of them.
    const int behind = a_.score_roundings - (a_.score_sum.format == SumFormat::exact ? 1 : 0);
    const Number unscaled = std::pow(kOperandScale, std::max(behind, 0));
    for (std::size_t t = 0; t < query_.size(); ++t) {
      const Number step = key_steps_.step(static_cast<std::size_t>(j), t);
      const Number k = steps_.operand(key[t], a_.key_operand, a_.key_rounding, step, query_[t] < 0 ? -push : push);
      for (const Number product : steps_.products(query_[t], a_.query_operand, k, a_.key_operand))
        terms_.push_back(sum_.product(product / unscaled, push, false));
    }
    Number s = sum_.sum(terms_, push);
    for (int n = 0; n < behind; ++n) s = steps_.round(s * kOperandScale, push);
    s = store(s, 3, push);
    if (choice_ / 6 % 2 == 1 && query_scale_ != 1 && key_scale != 1) {
      s = steps_.round(s * steps_.round(query_scale_ * key_scale), push);
    } else {
      if (query_scale_ != 1) s = steps_.round(s * query_scale_, push);
      if (key_scale != 1) s = steps_.round(s * key_scale, push);
    }
    if (where_ == Where::score && a_.scale != ScalePlacement::split_root) s = steps_.round(s * factor_, push);
    s = store(s, 2, push);
    Stages stages{};
    stages.raw = s;
    if (p_.softcap) {
      s = steps_.tanh(steps_.round(s / cap_, push), push);
      s = steps_.round(s * (a_.base2 ? steps_.round(cap_ * log2e_) : cap_), push);
    } else if (a_.base2 && !folds()) {
      s = steps_.round(s * log2e_, push);
    }
    s = stages.capped = store(s, 4, push);
    s = add_bias(s, bias, push);
    stages.biased = store(s, 1, push);
    return stages;
  }

  /// What the query and the scale become in a product with a score's gradient: q, or scale * q where that is kept.
  Number gradient_scale(bool of_query) const {
    return of_query && where_ == Where::query && a_.scale != ScalePlacement::split_root
               ? 1
               : steps_.round(p_.scale_value());
  }
  Number query_of_gradient(double q) const {
    const Number read = steps_.input(q);
    return gradient_scale(true) == 1 ? steps_.round(read * steps_.round(p_.scale_value())) : read;
  }
  /// 1 - tanh^2 of a capped score.
  Number slope(Number capped) const {
    if (!p_.softcap) return 1;
    const Number tanh = steps_.round(capped / (a_.base2 ? steps_.round(cap_ * log2e_) : cap_));
    return steps_.round(1 - steps_.round(tanh * tanh));
  }

  Number sink(Number logit) const { return a_.base2 ? steps_.round(logit * log2e_) : logit; }
  Number log2e() const { return log2e_; }

 private:
  enum class Where { query, key, score };
  static constexpr Number kLog2e = std::numbers::log2e_v<Number>;

  /// Query i before it is rounded.
  std::vector<Number> unrounded_query(const Head& head, std::int64_t i, Number& scale) const {
    const CodedRow row = coded_query(head, i, scales_behind_);
    scale = row.scale;
    std::vector<Number> query;
    for (double x : row.numbers) {
      const Number read = steps_.input(x, p_.q_scale && row.scale == 1, x < 0 ? -1 : 1);
      if (a_.scale == ScalePlacement::split_root) {
        query.push_back(steps_.round(read * root_) * (p_.scale_value() < 0 ? -1 : 1));
      } else {
        query.push_back(where_ == Where::query ? steps_.round(read * factor_) : read);
      }
    }
    return query;
  }

  /// Key j likewise. `push` is the score's, of which a negative query turns the direction.
  std::vector<Number> unrounded_key(const Head& head, std::int64_t j, Number& scale, int push) const {
    const CodedRow row = coded_key(head, Cache::keys, j, scales_behind_);
    scale = row.scale;
    std::vector<Number> key;
    for (std::size_t t = 0; t < row.numbers.size(); ++t) {
      const int way = t < query_.size() && query_[t] < 0 ? -push : push;
      Number k = steps_.input(row.numbers[t], p_.k_scale && row.scale == 1, way);
      if (!mean_.empty()) k = steps_.round(k - mean_[t], way);
      if (a_.scale == ScalePlacement::split_root) k = steps_.round(k * root_, way);
      if (where_ == Where::key && a_.scale != ScalePlacement::split_root) k = steps_.round(k * factor_, way);
      key.push_back(k);
    }
    return key;
  }

  /// The steps of a head's queries and keys, and the mean of its keys.
  void set_steps(const Head& head) {
    if (!states_steps(a_) || (batch_ == head.batch() && head_ == head.head())) return;
    batch_ = head.batch();
    head_ = head.head();
    const auto keys = static_cast<std::size_t>(p_.stored_keys(batch_)), dim = static_cast<std::size_t>(p_.key_dim);
    query_.clear();
    mean_.clear();
    if (a_.key_rounding.mean_removed && keys > 0) {
      std::vector<Number> mean(dim, 0);
      for (std::size_t j = 0; j < keys; ++j) {
        for (std::size_t t = 0; t < dim; ++t)
          mean[t] = steps_.round(mean[t] + steps_.input(head.key_row(static_cast<std::int64_t>(j))[t]));
      }
      for (Number& x : mean)
        x = steps_.operand(steps_.round(x / static_cast<Number>(keys)), a_.key_rounding.mean_format, 1);
      mean_ = std::move(mean);
    }
    const bool split = a_.scale == ScalePlacement::split_root;
    Number scale = 1;
    query_steps_ =
        GroupSteps(a_.query_operand, a_.query_rounding, static_cast<std::size_t>(p_.stored_queries(batch_)), dim,
                   split                    ? root_
                   : where_ == Where::query ? factor_
                                            : 1,
                   steps_, [&](std::size_t i) { return unrounded_query(head, static_cast<std::int64_t>(i), scale); });
    key_steps_ =
        GroupSteps(a_.key_operand, a_.key_rounding, keys, dim,
                   split                  ? root_
                   : where_ == Where::key ? factor_
                                          : 1,
                   steps_, [&](std::size_t j) { return unrounded_key(head, static_cast<std::int64_t>(j), scale, 1); });
  }

  bool folds() const { return a_.scale == ScalePlacement::folded_log2e && a_.base2 && !p_.softcap; }

  /// Rounds to the type of stored scores at the n-th place, in the order in which `score_stores` fills them.
  Number store(Number s, int place, int push) const {
    return a_.score_stores >= place ? steps_.stored(s, a_.stored_scores, push) : s;
  }

  Number add_bias(Number s, const ScoreBias& bias, int push) {
    Number additive = bias.additive, alibi = bias.alibi;
    if (alibi != 0) alibi = steps_.round(alibi, push);
    if (a_.base2) {
      if (additive != 0) additive = steps_.round(additive * log2e_, push);
      if (alibi != 0) alibi = steps_.round(alibi * log2e_, push);
    }
    if (additive == 0 || alibi == 0) return additive + alibi == 0 ? s : steps_.round(s + (additive + alibi), push);
    switch (where_) {
      case Where::query: return steps_.round(steps_.round(s + additive, push) + alibi, push);
      case Where::key: return steps_.round(steps_.round(s + alibi, push) + additive, push);
      case Where::score: return steps_.round(s + steps_.round(additive + alibi, push), push);
    }
    return s;
  }

  const Call& p_;
  const Arithmetic a_;
  Steps& steps_;
  const std::uint64_t choice_;
  Where where_;
  bool scales_behind_;
  Number query_scale_ = 1;
  Number log2e_, factor_, root_, cap_ = 1;
  SumSteps sum_;
  std::vector<Number> query_, terms_, mean_;
  GroupSteps query_steps_, key_steps_;
  std::int64_t batch_ = -1, head_ = -1;  ///< of them
};

}  // namespace attest::emulator

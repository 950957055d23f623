// The emulator's gradients: what each query row adds to them, rounded step by step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/support/host_results.h"
#include "reference/call/tensor_table.h"
#include "reference/softmax/gradient.h"
#include "tests/emulator/scores.h"
#include "tests/emulator/steps.h"

namespace attest::emulator {

/// Of one row, before they are stored: a weight and what the cap leaves of a derivative for each key.
struct GradientWeights {
  std::vector<Number> keys, slopes;
  Number sink = 0;
};

class Gradients {
 public:
  Gradients(const Call& call, const Inputs& inputs, const Arithmetic& a, Steps& steps, const Scores& scores,
            support::HostResults<double>& results)
      : p_(call),
        inputs_(inputs),
        a_(a),
        steps_(steps),
        scores_(scores),
        results_(results),
        way_(call.wants_gradients() ? static_cast<int>(steps.word() % 3) : 0),
        dk_(results.dk.size()),
        dv_(results.dv.size()),
        head_dk_(dk_.size()),
        head_dv_(dv_.size()),
        dmask_(results.dmask.size()),
        dsinks_(results.dsinks.size()) {}

  /// As saved, or of the forward pass.
  Number lse(const Head& head, std::int64_t i) const {
    double lse = results_.lse[results_.row(head.batch(), head.head(), i)];
    if (!p_.runs_forward()) support::read_row(inputs_.saved_lse(), head.batch(), head.head(), i, &lse);
    return lse;
  }

  void add_row(const Head& head, const Row& row, std::int64_t i, const GradientWeights& weights) {
    const std::size_t at = results_.row(head.batch(), head.head(), i), dims = static_cast<std::size_t>(p_.key_dim);
    std::vector<double> out(results_.out_row(at), results_.out_row(at) + p_.value_dim);
    if (!p_.runs_forward()) support::read_row(inputs_.saved_o(), head.batch(), head.head(), i, out.data());
    const RowLoss loss = loss_of(p_, inputs_, head.batch(), head.head(), i);
    const std::vector<double> query = head.query_row(i);
    const std::size_t column = static_cast<std::size_t>(i) % dims;
    std::vector<std::vector<Number>> terms(dims);
    find_products(head, row, loss, column);
    const Number delta = find_delta(row, loss, out, weights);
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (!row.seen[j]) continue;
      const auto key = static_cast<std::int64_t>(j);
      const int push = push_of(head, j, column);
      const Number of_score = score_gradient(weights.keys[j], products_[j], delta, steps_.input(loss.lse), push);
      Number of_raw = p_.softcap ? steps_.round(of_score * weights.slopes[j], push) : of_score;
      of_raw = steps_.stored(of_raw, a_.stored_score_gradients, push);
      for (std::size_t d = 0; d < dims; ++d)
        terms[d].push_back(steps_.round(of_raw * steps_.input(head.key_row(key)[d]), 1));
      const std::size_t stored = row_of_key(head, j);
      for (std::size_t d = 0; d < dims; ++d)
        add(head_dk_[stored * dims + d], of_raw * scores_.query_of_gradient(query[d]));
      Number weight = a_.kept_weights ? weights.keys[j] : steps_.stored(weights.keys[j], a_.stored_weights, push);
      if (!row.factors.empty()) weight = factor_of(row, j) == 0 ? 0 : steps_.round(weight * factor_of(row, j));
      for (std::size_t c = 0; c < loss.out.size(); ++c)
        add(head_dv_[stored * loss.out.size() + c], weight * steps_.input(loss.out[c]));
      if (!dmask_.empty())
        add(dmask_[element_of_mask(head, i, key)], steps_.stored(of_score, a_.stored_score_gradients, push));
    }
    for (std::size_t d = 0; d < dims && !terms[d].empty(); ++d) {
      const Number sum = steps_.round(steps_.sum(terms[d], 1) * scores_.gradient_scale(false), 1);
      results_.dq[at * dims + d] = static_cast<double>(steps_.nearest(sum));
    }
    if (row.sink != -kInfinity && !dsinks_.empty()) {
      const Number difference = steps_.round(steps_.input(loss.lse) - delta);
      add(dsinks_[static_cast<std::size_t>(head.head())], weights.sink * difference);
    }
  }

  /// What a query head gave to its keys is stored, and added to that of the heads before it.
  void end_head(const Head& head) {
    const std::size_t first = row_of_key(head, 0), keys = static_cast<std::size_t>(p_.key_length);
    const auto end = [&](std::vector<Number>& of_head, std::vector<Number>& all, std::int64_t columns, Number scale) {
      const std::size_t width = static_cast<std::size_t>(columns);
      for (std::size_t n = first * width; n < (first + keys) * width; ++n) {
        const Number share =
            steps_.stored(scale == 1 ? of_head[n] : steps_.round(of_head[n] * scale), a_.stored_head_gradients, 1);
        all[n] = all[n] == 0 ? share : steps_.round(all[n] + share);
        of_head[n] = 0;
      }
    };
    end(head_dk_, dk_, p_.key_dim, scores_.gradient_scale(true));
    end(head_dv_, dv_, p_.value_dim, 1);
  }

  void finish() {
    const auto give = [&](const std::vector<Number>& from, std::vector<double>& to) {
      std::transform(from.begin(), from.end(), to.begin(),
                     [&](Number x) { return static_cast<double>(steps_.nearest(x)); });
    };
    give(dk_, results_.dk);
    give(dv_, results_.dv);
    give(dmask_, results_.dmask);
    give(dsinks_, results_.dsinks);
  }

 private:
  /// A product's sum goes on; the first one is not added to anything.
  void add(Number& sum, Number product) {
    const Number term = steps_.round(product);
    sum = sum == 0 ? term : steps_.round(sum + term);
  }

  /// Whether more of key j raises the element of dq that the adversary wants large.
  static int push_of(const Head& head, std::size_t j, std::size_t column) {
    return head.key_row(static_cast<std::int64_t>(j))[column] < 0 ? -1 : 1;
  }

  Number factor_of(const Row& row, std::size_t j) const {
    return row.factors.empty() ? 1 : steps_.round(row.factors[j]);
  }

  /// dP.
  void find_products(const Head& head, const Row& row, const RowLoss& loss, std::size_t column) {
    products_.assign(row.seen.size(), 0);
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (!row.seen[j]) continue;
      const int push = push_of(head, j, column);
      std::vector<Number> terms;
      for (std::size_t c = 0; c < loss.out.size(); ++c) {
        const Number v = steps_.input(head.value_row(static_cast<std::int64_t>(j))[c]);
        terms.push_back(steps_.round(steps_.input(loss.out[c]) * v, push));
      }
      products_[j] = steps_.sum(terms, push);
      if (!row.factors.empty()) products_[j] = steps_.round(products_[j] * factor_of(row, j), push);
    }
  }

  /// D, 0 of a row that sees nothing.
  Number find_delta(const Row& row, const RowLoss& loss, const std::vector<double>& out,
                    const GradientWeights& weights) {
    if (row.visible_count == 0) return 0;
    std::vector<Number> terms;
    if (a_.delta_from_weights) {
      for (std::size_t j = 0; j < row.seen.size(); ++j) {
        if (row.seen[j]) terms.push_back(steps_.round(weights.keys[j] * products_[j], -1));
      }
    } else {
      for (std::size_t c = 0; c < out.size(); ++c)
        terms.push_back(steps_.round(steps_.input(loss.out[c]) * steps_.input(out[c]), -1));
    }
    return steps_.sum(terms, -1);
  }

  /// dS, in one of the orders that nobody declares.
  Number score_gradient(Number weight, Number product, Number delta, Number dlse, int push) const {
    if (way_ == 0) return steps_.round(weight * steps_.round(steps_.round(product - delta, push) + dlse, push), push);
    const Number shift = steps_.round(dlse - delta, push);
    if (way_ == 1) return steps_.round(weight * steps_.round(product + shift, push), push);
    return steps_.round(steps_.round(weight * product, push) + steps_.round(weight * shift, push), push);
  }

  std::size_t row_of_key(const Head& head, std::size_t j) const {
    const std::int64_t key_head = head.batch() * p_.key_heads + head.head() / p_.heads_per_group();
    return static_cast<std::size_t>(key_head * p_.key_length) + j;
  }

  std::size_t element_of_mask(const Head& head, std::int64_t i, std::int64_t j) const {
    const auto& kept = p_.mask->kept;
    const Index4 n = stored_shape(p_, TensorId::mask);
    const std::int64_t row = ((kept[0] ? head.batch() : 0) * n[1] + (kept[1] ? head.head() : 0)) * n[2];
    return static_cast<std::size_t>((row + (kept[2] ? i : 0)) * n[3] + (kept[3] ? j : 0));
  }

  const Call& p_;
  const Inputs& inputs_;
  const Arithmetic& a_;
  Steps& steps_;
  const Scores& scores_;
  support::HostResults<double>& results_;
  int way_;
  std::vector<Number> products_;
  std::vector<Number> dk_, dv_, head_dk_, head_dv_;  ///< of all heads that have ended, and of the one at hand
  std::vector<Number> dmask_, dsinks_;
};

}  // namespace attest::emulator

// Gradients of softmax attention: against differences of the forward reference over every kind of call, and in closed
// form where one is known.
#include "reference/softmax/gradient.h"

#include <algorithm>
#include <cmath>

#include "reference/call/tensor_table.h"
#include "reference/operators/operator.h"
#include "reference/softmax/key_place.h"
#include "tests/unit/helpers.h"
#include "tests/unit/loss.h"

namespace attest {
namespace {

/// What the reference gives: each dense, in the order of its axes.
struct Gradients {
  std::vector<double> q, k, v, mask, sinks;
};

Gradients gradients_of(const Loss& loss) {
  const Call& p = loss.problem.call;
  const Inputs views = loss.inputs.views();
  Gradients all;
  all.q.resize(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_dim));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const auto head = operator_of(p).head(p, views, b, h, {});
      ResultValues row;
      for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
        head->attend(i, row);
        std::ranges::copy(row.of(TensorId::dq),
                          all.q.begin() + ((b * p.query_heads + h) * p.query_length + i) * p.key_dim);
      }
    }
  }
  std::vector<TensorId> sums = outputs_of(p);
  std::erase_if(sums, [](TensorId id) { return index_space(id) == IndexSpace::query_rows; });
  const ResultValues values = operator_of(p).whole(p, views, sums, {}, {}).values;
  all.k = values.of(TensorId::dk);
  all.v = values.of(TensorId::dv);
  all.mask = values.of(TensorId::dmask);
  all.sinks = values.of(TensorId::dsinks);
  return all;
}

double largest(const std::vector<double>& list) {
  double most = 0;
  for (const double value : list) most = std::max(most, std::fabs(value));
  return most;
}

TEST(Gradient, IsTheLimitOfDifferences) {
  for (const char* line :
       {"seq=3x5 dim=2/3 dlse seed=1", "heads=4/2 batch=2 seq=4 dim=2 causal dlse seed=2",
        "heads=2 seq=4x6 dim=3 causal align=bottom-right softcap=1.5 scale=-0.8 dlse seed=3",
        "heads=2 seq=3x4 dim=2 mask=add:1HQ1:normal alibi align=bottom-right dlse out=dq,dk,dv,dmask seed=4",
        "heads=2 seq=3x4 dim=2 mask=add:11QK:neginf(0.4) sinks dlse out=dq,dk,dv,dmask,dsinks seed=5",
        "batch=2 seq=3x4 dim=2 dropout=0.4 sinks dlse out=dq,dk,dv,dsinks seed=6",
        "seq=5 dim=2 window=1:1 prefix=1 segments=2,3 dlse seed=7", "seq=4x6 dim=2 blocks=2x3:random(0.5) dlse seed=8",
        "batch=2 heads=2 seq=2x5 dim=2 past=3,1 causal dlse seed=9",
        "batch=2 seq=2x7 dim=2 paged=3 lengths=q:2,1/k:7,4 dlse seed=10",
        "batch=3 heads=2/1 seq=3x4 dim=2 lengths=q:3,0,2/k:4,1,0 layout=thd dlse seed=11"}) {
    Loss loss(line);
    const Call& p = loss.problem.call;
    const Gradients g = gradients_of(loss);
    const double allowed = 1e-8 * (1 + largest(g.q) + largest(g.k) + largest(g.v));
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
          for (std::int64_t d = 0; d < p.key_dim; ++d) {
            const std::int64_t at = ((b * p.query_heads + h) * p.query_length + i) * p.key_dim + d;
            EXPECT_NEAR(g.q[static_cast<std::size_t>(at)], loss.difference(TensorId::q, {b, h, i, d}), allowed) << line;
          }
        }
      }
      for (std::int64_t h = 0; h < p.key_heads; ++h) {
        for (std::int64_t j = 0; j < p.stored_keys(b); ++j) {
          const KeyPlace place = place_of_key(loss.problem, loss.inputs.views(), b, j);
          const std::int64_t row = (b * p.key_heads + h) * p.key_length + j;
          const Index4 at = {place.batch, h, place.row, 0};
          const double dk = loss.difference(place.keys(), at);
          const double dv = loss.difference(place.values(), at);
          EXPECT_NEAR(g.k[static_cast<std::size_t>(row * p.key_dim)], dk, allowed) << line << " key " << j;
          EXPECT_NEAR(g.v[static_cast<std::size_t>(row * p.value_dim)], dv, allowed) << line << " key " << j;
        }
      }
    }
    std::size_t n = 0;
    each_index(g.mask.empty() ? Index4{} : loss.inputs.at(TensorId::mask).shape(),
               [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                 const Index4 at = {b, h, i, j};
                 const TensorStorage& mask = loss.inputs.at(TensorId::mask);
                 const double held = load(mask.memory().data(), DType::f64, mask.place().element(b, h, i, j));
                 if (std::isfinite(held))
                   EXPECT_NEAR(g.mask[n], loss.difference(TensorId::mask, at), allowed) << line;
                 else
                   EXPECT_EQ(g.mask[n], 0) << "a key that is hidden";
                 ++n;
               });
    for (std::size_t h = 0; h < g.sinks.size(); ++h)
      EXPECT_NEAR(g.sinks[h], loss.difference(TensorId::sinks, {0, static_cast<std::int64_t>(h), 0, 0}), allowed)
          << line;
  }
}

TEST(Gradient, OfOneKeyIsTheLossAlone) {
  // A single weight is 1 whatever the score: nothing flows to q and k but through lse.
  const Loss loss("seq=3x1 dim=2");
  const Gradients g = gradients_of(loss);
  for (const double value : g.q) EXPECT_EQ(value, 0);
  for (const double value : g.k) EXPECT_EQ(value, 0);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) sum += loss_of(loss.problem, loss.inputs.views(), 0, 0, i).out[c];
    EXPECT_DOUBLE_EQ(g.v[c], sum);
  }
}

/// Gradients by one head's elements as a function changes its inputs: change(tensor, row, column, value).
template <class Change>
Gradients gradients_with(const std::string& line, const Change& change) {
  Loss loss(line);
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::dout}) {
    TensorStorage& storage = loss.inputs.at(id);
    const Loss were(line);
    const Index4 n = storage.shape();
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const auto value = [&](std::int64_t row) {
        return load(were.inputs.at(id).memory().data(), DType::f64, storage.place().element(b, h, row, d));
      };
      storage.set(b, h, l, d, change(id, l, value));
    });
  }
  return gradients_of(loss);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t n = 0; n < got.size(); ++n)
    EXPECT_NEAR(got[n], expected[n], 1e-14 * (1 + largest(expected))) << what;
}

constexpr auto kAsTheyAre = [](TensorId, std::int64_t row, const auto& value) { return value(row); };

TEST(Gradient, OfUniformWeightsIsACovariance) {
  // Scores of 0: each weight is 1/n, and dq the mean of (dP_j - mean of dP) * k_j. No q reaches k.
  const char* line = "seq=2x5 dim=3/2 q.fill=constant(0) scale=0.5";
  const Loss loss(line);
  const Inputs views = loss.inputs.views();
  const Head head(loss.problem, views, 0, 0);
  const Gradients g = gradients_of(loss);
  for (const double value : g.k) EXPECT_EQ(value, 0);
  for (std::int64_t i = 0; i < 2; ++i) {
    const RowLoss of_row = loss_of(loss.problem, views, 0, 0, i);
    const auto product = [&](std::int64_t j) {
      return of_row.out[0] * head.value_row(j)[0] + of_row.out[1] * head.value_row(j)[1];
    };
    double mean = 0;
    for (std::int64_t j = 0; j < 5; ++j) mean += product(j) / 5;
    for (std::int64_t d = 0; d < 3; ++d) {
      double expected = 0;
      for (std::int64_t j = 0; j < 5; ++j) expected += 0.5 * (product(j) - mean) * head.key_row(j)[d] / 5;
      EXPECT_NEAR(g.q[static_cast<std::size_t>(3 * i + d)], expected, 1e-14);
    }
  }
}

TEST(Gradient, IsLinearInTheLoss) {
  const char* line = "heads=2 seq=4x5 dim=3 softcap=2 causal align=bottom-right";
  const Gradients g = gradients_of(Loss(line));
  Gradients times = gradients_with(line, [](TensorId id, std::int64_t row, const auto& value) {
    return id == TensorId::dout ? -4 * value(row) : value(row);
  });
  for (auto* list : {&times.q, &times.k, &times.v}) {
    for (double& value : *list) value /= -4;
  }
  expect_near(times.q, g.q, "dq");
  expect_near(times.k, g.k, "dk");
  expect_near(times.v, g.v, "dv");
}

TEST(Gradient, OfKeysInAnotherOrderIsInThatOrder) {
  const char* line = "seq=4x5 dim=3 dlse";
  const Gradients g = gradients_of(Loss(line)),
                  turned = gradients_with(line, [](TensorId id, std::int64_t row, const auto&value) {
                    return value(id == TensorId::k || id == TensorId::v ? 4 - row : row);
                  });
  const auto reversed = [](const std::vector<double>& list) {
    std::vector<double> rows;
    for (std::size_t j = 5; j-- > 0;) rows.insert(rows.end(), list.begin() + 3 * j, list.begin() + 3 * j + 3);
    return rows;
  };
  expect_near(turned.q, g.q, "dq");
  expect_near(turned.k, reversed(g.k), "dk");
  expect_near(turned.v, reversed(g.v), "dv");
}

TEST(Gradient, OfScaledQueriesIsThatOfAScale) {
  // q/2 under twice the scale: the same weights, twice the dq, the same dk.
  const Gradients g = gradients_with("seq=4x5 dim=3 scale=0.5", kAsTheyAre);
  Gradients scaled = gradients_with("seq=4x5 dim=3 scale=1", [](TensorId id, std::int64_t row, const auto& value) {
    return id == TensorId::q ? value(row) / 2 : value(row);
  });
  for (double& value : scaled.q) value /= 2;
  expect_near(scaled.q, g.q, "dq");
  expect_near(scaled.k, g.k, "dk");
  expect_near(scaled.v, g.v, "dv");
}

TEST(Gradient, OfScoresAddsUpToLseAlone) {
  // A shift that is common to a row's scores changes its lse alone: the sum of dS over the keys is dlse.
  const Loss loss("heads=2 seq=4x7 dim=3 softcap=2 causal align=bottom-right");
  const Inputs views = loss.inputs.views();
  for (std::int64_t h = 0; h < 2; ++h) {
    const Head head(loss.problem, views, 0, h);
    for (std::int64_t i = 0; i < 4; ++i) {
      Row row;
      head.attend(i, row);
      RowLoss of_row{{0.5, -1, 2}, 0.75};
      RowGradient g;
      differentiate(head, row, of_row, g);
      double sum = 0;
      for (const double value : g.scores) sum += value;
      EXPECT_NEAR(sum, 0.75, 1e-14);
    }
  }
}

TEST(Gradient, NothingHiddenReachesIt) {
  Loss loss("batch=2 seq=3x4 dim=2 lengths=q:2,0/k:3,0 dlse poison=hidden:kv");
  for (std::int64_t i : {2, 3, 4, 5}) {  // rows that see nothing, NaN in their do and dlse
    loss.inputs.at(TensorId::dout).set(i / 3, 0, i % 3, 0, kNaN);
    loss.inputs.at(TensorId::dlse).set(i / 3, 0, i % 3, 0, kNaN);
  }
  const Gradients g = gradients_of(loss);
  for (const auto* list : {&g.q, &g.k, &g.v}) {
    for (const double value : *list) EXPECT_TRUE(std::isfinite(value));
  }
  for (std::size_t n = 2 * 3; n < 2 * 8; ++n) EXPECT_EQ(g.k[n], 0) << "a key that nobody sees";
}

}  // namespace
}  // namespace attest

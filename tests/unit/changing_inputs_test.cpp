// No element of a benchmark's data is what it was in the run before, so that nothing of an earlier run helps.
#include "harness/speed/trust/changing_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "harness/speed/timing/bench.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Of a tensor, by place: its elements as numbers.
std::map<std::size_t, double> elements(const ConstTensor& t) {
  std::map<std::size_t, double> values;
  for (std::int64_t b = 0; b < t.shape[0]; ++b) {
    const std::int64_t rows = t.starts ? t.starts[b + 1] - t.starts[b] : t.shape[2];
    for (std::int64_t h = 0; h < t.shape[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        for (std::int64_t d = 0; d < t.shape[3]; ++d) {
          const std::int64_t at = t.offset(b, h, l, d);
          values[static_cast<std::size_t>(at)] = load(t.data, t.dtype, at);
        }
      }
    }
  }
  return values;
}

using Tensors = std::map<std::string, std::map<std::size_t, double>>;

Tensors tensors_of(const Inputs& inputs) {
  return {{"q", elements(inputs.q())}, {"k", elements(inputs.k())}, {"v", elements(inputs.v())}};
}

TEST(ChangingInputs, EveryElementIsAnotherThanInTheRunBefore) {
  for (const char* line : {"heads=4/2 seq=33x65 dim=24", "dtype=f16 heads=2 seq=20 dim=16", "dtype=bf16 seq=40 dim=8",
                           "dtype=f64 seq=17 dim=5", "heads=2 seq=16 dim=8 k.strides=0,0,8,1",
                           "batch=2 seq=9x21 dim=8 lengths=q:9,4/k:21,7 layout=thd", "seq=12 dim=8 fill=mixed",
                           "seq=12 dim=8 fill=onehot"}) {
    const Case one = case_from_line(line);
    ChangingInputs changing(make_inputs(one.problem), 7);
    Tensors before = tensors_of(make_inputs(one.problem).views());
    double changed_signs = 0, count = 0;
    const double near = one.problem.dtype == DType::bf16 ? 0.025 : one.problem.dtype == DType::f16 ? 0.008 : 0.001;
    for (int run = 0; run < 6; ++run) {
      const Tensors now = tensors_of(changing.next());
      for (const auto& [name, values] : now) {
        for (const auto& [at, value] : values) {
          const double earlier = before.at(name).at(at);
          if (std::fabs(earlier) < 1e-37 || !std::isfinite(earlier)) {  // no number, or none with a whole mantissa
            EXPECT_TRUE(std::fabs(value) == std::fabs(earlier) || std::isnan(earlier))
                << line << " " << name << "[" << at << "]";
            continue;
          }
          ASSERT_NE(std::fabs(value), std::fabs(earlier))
              << line << ": run " << run << ", " << name << "[" << at << "]";
          EXPECT_NEAR(std::fabs(value) / std::fabs(earlier), 1, near) << line;
          changed_signs += (value < 0) != (earlier < 0);
          ++count;
        }
      }
      EXPECT_TRUE(changing.intact()) << line;
      before = now;
    }
    EXPECT_NEAR(changed_signs / count, 0.5, 0.15) << line;
    EXPECT_TRUE(changing.all_intact()) << line;
  }
}

TEST(ChangingInputs, KnowsWhoWroteToThemAndPutsThemBack) {
  const Case one = case_from_line("heads=2 seq=20 dim=16");
  ChangingInputs changing(make_inputs(one.problem), 3);
  for (int run = 0; run < 5; ++run) changing.next();
  const Inputs& shown = changing.next();
  auto* element = static_cast<float*>(const_cast<void*>(shown.k().data)) + 5;
  const float right = *element;
  *element = 2 * right;
  EXPECT_FALSE(changing.intact());
  changing.restore();
  EXPECT_TRUE(changing.all_intact());
  EXPECT_EQ(*element, right);
}

TEST(ChangingInputs, ASeedRepeatsThem) {
  const Case one = case_from_line("seq=20 dim=16");
  ChangingInputs first(make_inputs(one.problem), 3), second(make_inputs(one.problem), 3),
      other(make_inputs(one.problem), 4);
  const Tensors run = tensors_of(first.next());
  EXPECT_EQ(run, tensors_of(second.next()));
  EXPECT_NE(run, tensors_of(other.next()));
}

/// How much of the work was done, counted in products of one feature of q and k.
struct Work {
  double done = 0, whole = 0;
};

/// Right results, from scores that it keeps: where few features have changed since the last run, it adds what they
/// change. What it doesn't compute anew is what it saves.
class KeptScoresPlan : public Plan {
 public:
  KeptScoresPlan(const Call& call, Work& work) : call_(call), work_(work) {}

  void upload(const Inputs& inputs) override {
    q_ = copied(inputs.q());
    k_ = copied(inputs.k());
    v_ = copied(inputs.v());
  }

  void run() override {
    const auto [rows, keys, dim] = sizes();
    const bool first = kept_.empty();
    kept_.resize(heads() * rows * keys * dim);
    for (std::size_t head = 0; head < heads(); ++head) {
      for (std::size_t d = 0; d < dim; ++d) {
        if (!first && !differs(head, d)) continue;
        for (std::size_t i = 0; i < rows; ++i) {
          for (std::size_t j = 0; j < keys; ++j) {
            kept_[((head * dim + d) * rows + i) * keys + j] =
                q_[(head * rows + i) * dim + d] * k_[(head * keys + j) * dim + d];
          }
        }
        work_.done += static_cast<double>(rows * keys);
      }
      work_.whole += static_cast<double>(rows * keys * dim);
    }
    sum_up();
    old_q_ = q_;
    old_k_ = k_;
  }

  void download(const Outputs& outputs) override {
    const auto [rows, keys, dim] = sizes();
    for (std::size_t head = 0; head < heads(); ++head) {
      for (std::size_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < keys; ++j) sum += scores_[(head * rows + i) * keys + j];
        for (std::size_t c = 0; c < dim; ++c) {
          double value = 0;
          for (std::size_t j = 0; j < keys; ++j)
            value += scores_[(head * rows + i) * keys + j] * v_[(head * keys + j) * dim + c];
          static_cast<float*>(outputs.out().data)[outputs.out().offset(
              0, static_cast<std::int64_t>(head), static_cast<std::int64_t>(i), static_cast<std::int64_t>(c))] =
              static_cast<float>(value / sum);
        }
      }
    }
  }

 private:
  struct Sizes {
    std::size_t rows, keys, dim;
  };
  Sizes sizes() const {
    return {static_cast<std::size_t>(call_.query_length), static_cast<std::size_t>(call_.key_length),
            static_cast<std::size_t>(call_.key_dim)};
  }
  std::size_t heads() const { return static_cast<std::size_t>(call_.query_heads); }
  static std::vector<double> copied(const ConstTensor& t) {
    std::vector<double> values;
    for (const auto& [at, value] : elements(t)) values.push_back(value);
    return values;
  }
  bool differs(std::size_t head, std::size_t d) const {
    const auto [rows, keys, dim] = sizes();
    for (std::size_t i = 0; i < rows; ++i) {
      if (q_[(head * rows + i) * dim + d] != old_q_[(head * rows + i) * dim + d]) return true;
    }
    for (std::size_t j = 0; j < keys; ++j) {
      if (k_[(head * keys + j) * dim + d] != old_k_[(head * keys + j) * dim + d]) return true;
    }
    return false;
  }
  void sum_up() {
    const auto [rows, keys, dim] = sizes();
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    scores_.assign(heads() * rows * keys, 0);
    for (std::size_t head = 0; head < heads(); ++head) {
      for (std::size_t d = 0; d < dim; ++d) {
        for (std::size_t n = 0; n < rows * keys; ++n)
          scores_[head * rows * keys + n] += kept_[(head * dim + d) * rows * keys + n];
      }
    }
    for (double& score : scores_) score = std::exp(score * scale);
  }

  const Call call_;
  Work& work_;
  std::vector<double> q_, k_, v_, old_q_, old_k_, kept_, scores_;
};

class KeptScores : public Backend {
 public:
  explicit KeptScores(Work& work) : work_(work), inner_(faulty::faulty_backends().front().make({1, ""})) {}
  Identity identity() const override { return {"kept_scores", "keeps its scores", "CPU"}; }
  int contract() const override { return 3; }
  Arithmetic arithmetic(const Call& p) const override { return inner_->arithmetic(p); }
  std::unique_ptr<Plan> prepare(const Call& p) override { return std::make_unique<KeptScoresPlan>(p, work_); }

 private:
  Work& work_;
  std::unique_ptr<Backend> inner_;
};

TEST(ChangingInputs, ScoresThatWereKeptSaveNothing) {
  Work work;
  KeptScores backend(work);
  const BenchLine line =
      bench_case(case_from_line("heads=2 seq=32 dim=16"), {&backend}, {100, 50, 10, 2}, {1, 4, 0.005, 1}).lines.at(0);
  // It is right, and as slow outside of run as it likes.
  EXPECT_NE(line.wrong.kind, NoSpeed::wrong_result) << line.wrong.text;
  EXPECT_NE(line.wrong.kind, NoSpeed::wrong_while_timed) << line.wrong.text;
  // Checks of the harness give the same data again, of the runs that are timed none does.
  EXPECT_GT(work.done, 0.5 * work.whole) << "of " << work.whole << " products";
}

}  // namespace
}  // namespace attest

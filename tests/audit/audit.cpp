// audit FILE: the oracle against MPFR. For each small line of a case file, everything is computed once more with 256
// bits, and gradients at some elements from dual numbers: the reference must lie within the bound it states for
// itself, and each backend within the bound derived for it, of the exact value. So must the emulator, with an
// arithmetic drawn for each line. Prints how far above the true error the bounds are. Exit code 1 at the first
// violation.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/refusal.h"
#include "backends/registry.h"
#include "harness/backends/set/backend_set.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/cases/suites.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "reference/operators/operator.h"
#include "reference/softmax/attention.h"
#include "tests/audit/exact_attention.h"
#include "tests/audit/exact_gradient.h"
#include "tests/audit/exact_linear.h"
#include "tests/audit/exact_merge.h"
#include "tests/emulator/declarations.h"
#include "tests/emulator/emulator.h"

namespace attest::audit {
namespace {

constexpr double kMaxOperations = 4e4;  ///< of the reference on one line, and for one gradient
constexpr int kSampledGradients = 4;    ///< of each tensor

class Audit {
 public:
  explicit Audit(const BackendSet& backends) : backends_(backends) {}

  void line(const Case& source) {
    const Problem& p = source.problem;
    const double rows = static_cast<double>(p.call.batch * p.call.query_heads * p.call.query_length);
    if (!p.data.poison.empty() || rows * operator_of(p).row_operations(p) > kMaxOperations) return;
    CaseInputs made;
    try {
      made = make_inputs(p);
    } catch (const UserError&) {
      return;
    }
    const Inputs inputs = made.views();
    std::vector<Producer> producers;
    std::vector<Backend*> takers;
    for (Backend* backend : backends_.all()) {
      if (refusal_of(*backend, p)) continue;
      takers.push_back(backend);
      producers.push_back({backend->arithmetic(p), {}});
    }
    emulator::EmulatorBackend emulated(emulator::random_declaration(random_, p.call.dtype));
    if (!refusal_of(emulated, p)) {
      takers.push_back(&emulated);
      producers.push_back({emulated.arithmetic(p), {}});
    }
    const Expectation e = expect(p, inputs, producers, 1, kInfinity);
    std::vector<GuardedOutputs> outputs;
    for (Backend* backend : takers) {
      outputs.emplace_back(p);
      walk_once(*backend, p, inputs, outputs.back());
    }
    type_ = name_of(p.call.dtype);
    line_ = source.label + "\n    of the emulator: " + emulator::text_of(emulated.arithmetic(p));
    ++lines_;
    const auto compare = [&](const char* what, const Big& exact, double reference, double own, std::size_t n,
                             double got, double bound) {
      // Of data that aren't finite the class is what matters (reference/softmax/non_finite.h); numbers alone have an
      // error.
      if (!std::isfinite(reference)) return;
      // The reference once, with the first backend.
      if (n == 0) element("reference", what, exact, reference, own);
      if (n < takers.size()) element(takers[n]->identity().name, what, exact, got, bound);
    };
    const std::size_t columns = static_cast<std::size_t>(p.call.value_dim),
                      keys = static_cast<std::size_t>(p.call.key_length);
    for (std::size_t r = 0; r < e.rows.size(); ++r) {
      const auto [b, h, i] = e.rows[r];
      if (p.call.has_state() && i >= p.call.query_count(b)) continue;  // behind the tokens of its sequence: 0
      const ExactRow<Big> exact = p.call.has_scores()  ? softmax_row(p, inputs, b, h, i)
                                  : p.call.has_parts() ? merge_row(p, inputs, b, h, i)
                                                       : linear_row(p, inputs, b, h, i);
      for (std::size_t n = 0; n < std::max<std::size_t>(takers.size(), 1); ++n) {
        const bool ran = n < takers.size();
        for (std::size_t c = 0; c < columns && p.call.wants(Output::o); ++c) {
          const std::size_t at = r * columns + c;
          compare("o", exact.output[c], e.of(TensorId::out)[at], e.own.of(TensorId::out)[at], n,
                  ran ? outputs[n].out(b, h, i, static_cast<std::int64_t>(c)) : 0,
                  ran ? e.bounds_for(producers[n]).of(TensorId::out)[at] : 0);
        }
        if (p.call.wants(Output::lse) && !exact.empty) {
          compare("lse", exact.lse, e.of(TensorId::lse)[r], e.own.of(TensorId::lse)[r], n,
                  ran ? outputs[n].lse(b, h, i) : 0, ran ? e.bounds_for(producers[n]).of(TensorId::lse)[r] : 0);
        }
        for (const TensorId id : {TensorId::row_max, TensorId::row_sum}) {
          if (!has_tensor(p.call, id) || exact.empty) continue;
          compare(std::string(name_of(id)).c_str(), id == TensorId::row_max ? exact.max : exact.sum, e.of(id)[r],
                  e.own.of(id)[r], n, ran ? outputs[n].at(id, b, h, i, 0) : 0,
                  ran ? e.bounds_for(producers[n]).of(id)[r] : 0);
        }
        for (std::size_t s = 0; s < kScoreStages.size(); ++s) {
          const TensorId id = kScoreStages[s];
          if (!has_tensor(p, id)) continue;
          const auto& list = s == 0 ? exact.raw : s == 1 ? exact.capped : s == 2 ? exact.biased : exact.weights;
          for (std::size_t j = 0; j < keys; ++j) {
            const std::size_t at = r * keys + j;
            if (std::isinf(e.of(id)[at])) continue;  // hidden: -inf by definition
            compare("stage", list[j], e.of(id)[at], e.own.of(id)[at], n,
                    ran ? outputs[n].at(id, b, h, i, static_cast<std::int64_t>(j)) : 0,
                    ran ? e.bounds_for(producers[n]).of(id)[at] : 0);
          }
        }
      }
    }
    for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dmask, TensorId::dsinks,
                              TensorId::ddecay, TensorId::dbeta, TensorId::dstate}) {
      if (!has_tensor(p, id)) continue;
      for (int sample = 0; sample < kSampledGradients; ++sample) {
        const std::optional<Index4> at = draw_element(p, id);
        if (!at) continue;
        const auto [b, h, l, d] = *at;
        const std::size_t place = place_of_result(e, p, id, *at);
        const Big exact =
            p.call.has_scores() ? derivative(p, inputs, {id, *at}) : linear_derivative(p, inputs, {id, *at});
        for (std::size_t n = 0; n < std::max<std::size_t>(takers.size(), 1); ++n) {
          const bool ran = n < takers.size();
          compare(std::string(name_of(id)).c_str(), exact, e.of(id)[place], e.own.of(id)[place], n,
                  ran ? outputs[n].at(id, b, h, l, d) : 0, ran ? e.bounds_for(producers[n]).of(id)[place] : 0);
        }
      }
    }
  }

  int report() {
    std::printf("%lld lines, %lld elements, %lld violations\n\nbound / true error, where there was an error\n", lines_,
                elements_, violations_);
    std::printf("%-24s %10s %10s %10s %10s %10s\n", "", "elements", "least", "1%", "median", "99%");
    for (auto& [name, list] : ratios_) {
      if (list.empty()) continue;
      std::sort(list.begin(), list.end());
      const auto at = [&list = list](double q) {
        return list[static_cast<std::size_t>(q * static_cast<double>(list.size() - 1))];
      };
      std::printf("%-24s %10zu %10.3g %10.3g %10.3g %10.3g\n", name.c_str(), list.size(), at(0), at(0.01), at(0.5),
                  at(0.99));
    }
    return lines_ == 0 ? 3 : violations_ > 0;
  }

 private:
  static ExactRow<Big> softmax_row(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                   std::int64_t i) {
    const Head head(p, inputs, b, h);
    Row row;
    head.attend(i, row);
    return attend<Big>(head, row, i);
  }

  /// The recurrence up to row i, from the start.
  static ExactRow<Big> linear_row(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i) {
    ExactState<Big> state(p, inputs, b, h / p.heads_per_group());
    for (std::int64_t t = 0; t <= i; ++t) state.step(t);
    ExactRow<Big> exact;
    exact.output = state.output(h, i);
    return exact;
  }

  /// A stored element of a gradient that few enough rows reach, or none.
  std::optional<Index4> draw_element(const Call& p, TensorId id) {
    const Index4 n = seen_shape(p, id);
    Index4 at{};
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (n[axis] == 0) return std::nullopt;
      at[axis] = static_cast<std::int64_t>(random_.below(static_cast<std::size_t>(n[axis])));
    }
    const bool of_keys = index_space(id) == IndexSpace::key_rows;
    if (of_keys && at[2] >= p.stored_keys(at[0])) return std::nullopt;
    if (id == TensorId::dq && at[2] >= p.stored_queries(at[0])) return std::nullopt;
    double rows = 0;
    if (p.has_scores()) {
      each_row_of(p, id, at, [&](std::int64_t, std::int64_t, std::int64_t) { ++rows; });
    } else {
      each_key_head_of(p, id, at, [&](std::int64_t) { rows += static_cast<double>(p.query_length); });
    }
    if (rows * operator_of(p).row_operations(p) > kMaxOperations) return std::nullopt;
    return at;
  }

  /// Of its element in the lists of an expectation that has every row.
  static std::size_t place_of_result(const Expectation& e, const Call& p, TensorId id, const Index4& at) {
    const Index4 n = seen_shape(p, id);
    if (index_space(id) != IndexSpace::query_rows)
      return static_cast<std::size_t>(((at[0] * n[1] + at[1]) * n[2] + at[2]) * n[3] + at[3]);
    const auto row = std::find(e.rows.begin(), e.rows.end(), RowIndex{at[0], at[1], at[2]});
    return static_cast<std::size_t>((row - e.rows.begin()) * n[3] + at[3]);
  }

  void element(const std::string& who, const char* what, const Big& exact, double got, double bound) {
    if (bound == kInfinity) return;
    ++elements_;
    const double error = std::isfinite(got) ? abs(Big(got) - exact).number() : kInfinity;
    if (error > bound) {
      if (++violations_ <= 20) {
        std::printf("VIOLATION %s %s: got %.17g, exact %.17g, error %.3g, bound %.3g\n    %s\n", who.c_str(), what, got,
                    exact.number(), error, bound, line_.c_str());
      }
    } else if (error > 0) {
      const bool of_gradient = what[0] == 'd';
      ratios_[who + " " + type_ + (of_gradient ? " gradients" : "")].push_back(bound / error);
    }
  }

  const BackendSet& backends_;
  Random random_{11};
  std::string line_, type_;
  long long lines_ = 0, elements_ = 0, violations_ = 0;
  std::map<std::string, std::vector<double>> ratios_;
};

}  // namespace
}  // namespace attest::audit

int main(int argc, char** argv) {
  using namespace attest;
  if (argc != 2) {
    std::fprintf(stderr, "usage: audit FILE.cases\n");
    return 2;
  }
  try {
    const BackendSet backends(registered_backends(), {}, {1, ""});
    audit::Audit audit(backends);
    for (const Case& source : load_case_file(argv[1])) audit.line(source);
    return audit.report();
  } catch (const UserError& error) {
    std::fprintf(stderr, "audit: %s\n", error.what());
    return 2;
  }
}

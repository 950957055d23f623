// Short ways to what unit tests need.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/registry.h"
#include "harness/backends/set/backend_set.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "reference/softmax/attention.h"

namespace attest {

/// Built with the address sanitizer, under which a test takes ten times as long.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// The problem's data and the reference's rows.
struct Computed {
  Problem problem;
  CaseInputs inputs;
  Attention attention;

  explicit Computed(const std::string& line)
      : problem(parse_case(line)),
        inputs(make_inputs(problem)),
        attention(attest::attention(problem, inputs.views())) {}
  const Row& row(std::size_t n) const { return attention.rows.at(n); }
};

inline Verdict check(Backend& backend, const std::string& line) {
  const Case source = case_from_line(line);
  return PreparedCase(source, {&backend}, 1).check(backend);
}

/// Output of a backend on given inputs, dense in the order b, h, i, c; then lse if asked for.
inline std::vector<double> run_backend(Backend& backend, const Problem& problem, const Inputs& inputs) {
  const Call& p = problem.call;
  GuardedOutputs outputs(problem);
  const auto plan = backend.prepare(p);
  plan->upload(inputs);
  plan->run();
  plan->download(outputs.views());
  EXPECT_EQ(outputs.inspect().reason, "");
  std::vector<double> values;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        for (std::int64_t c = 0; c < p.value_dim; ++c) values.push_back(outputs.out(b, h, i, c));
        if (p.wants(Output::lse)) values.push_back(outputs.lse(b, h, i));
      }
    }
  }
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv}) {
    if (!has_tensor(p, id)) continue;
    each_index(seen_shape(p, id), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      values.push_back(outputs.at(id, b, h, l, d));
    });
  }
  return values;
}

}  // namespace attest

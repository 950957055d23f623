#include <array>
#include <stdexcept>

#include "reference/linear/linear_operator.h"
#include "reference/merge/merge_operator.h"
#include "reference/operators/operator.h"
#include "reference/softmax/softmax_operator.h"

namespace attest {
namespace {

constexpr std::array kOperators = {softmax_operator, linear_operator, linear_operator,
                                   linear_operator,  linear_operator, merge_operator};
static_assert(kOperators.size() == kNames<Op>.size(), "a row for each Op, in its order");

}  // namespace

const Operator& operator_of(const Call& call) { return kOperators[static_cast<std::size_t>(call.op)](); }

WholeResults Operator::whole(const Call&, const Inputs&, const std::vector<TensorId>& results,
                             const std::vector<Producer>& producers, const std::vector<char>&) const {
  if (!results.empty()) throw std::logic_error("every result of this operator is numbered by query rows");
  return {{}, std::vector<ResultValues>(producers.size())};
}

double Operator::multiply_adds(const Call& p) const {
  return row_operations(p) * static_cast<double>(p.batch * p.query_heads * p.query_length);
}

std::vector<ResultValues> reference_rows(const Call& p, const Inputs& inputs) {
  std::vector<ResultValues> rows;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const auto head = operator_of(p).head(p, inputs, b, h, {});
      for (std::int64_t i = 0; i < p.stored_queries(b); ++i) head->attend(i, rows.emplace_back());
    }
  }
  return rows;
}

}  // namespace attest

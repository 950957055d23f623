// What an operator is to everyone else: the values of its results, their bounds, and the work that they take.
//
// To add one: a name and its traits (reference/call/call.h), a folder beside this one, and a row in operator_table.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/call.h"
#include "reference/call/result_values.h"
#include "reference/call/samples.h"

namespace attest {

/// The results of one query head of one batch, row by row.
class HeadReference {
 public:
  virtual ~HeadReference() = default;
  /// Fills `row` with what query row i has of each result that is numbered by query rows: o always in a forward pass,
  /// and lse where there are scores; others where the call asks for them. Call it with ascending rows.
  virtual void attend(std::int64_t i, ResultValues& row) = 0;
  /// The bounds of the row that was filled last, for the n-th producer.
  virtual void bound(std::size_t n, ResultValues& bound) = 0;
  /// Standard deviations of these columns of that row of `result`, which query rows number: a list for each producer,
  /// infinite where nothing is claimed, or no list where the operator claims none for this result.
  virtual std::vector<std::vector<double>> deviations(TensorId /*result*/, std::span<const std::int64_t> /*columns*/) {
    return {};
  }
};

/// Results as wholes: their elements in the order of their axes, and their bounds for each producer.
struct WholeResults {
  ResultValues values;
  std::vector<ResultValues> bounds;
  std::vector<SampledElement> sampled{};
  std::vector<std::vector<double>> deviations{};  ///< of the sampled elements, a list for each producer
};

class Operator {
 public:
  virtual ~Operator() = default;

  /// Keeps references to the call and the inputs; they outlive it.
  virtual std::unique_ptr<HeadReference> head(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                              const std::vector<Producer>& producers) const = 0;
  /// Results of the call that are not numbered by query rows. Of those that key rows number, the key heads for which
  /// `of_key_heads` is not 0, by batch and key head, or all where it is empty: others may be left at 0. Throws
  /// std::logic_error where the operator has no such result.
  virtual WholeResults whole(const Call& call, const Inputs& inputs, const std::vector<TensorId>& results,
                             const std::vector<Producer>& producers, const std::vector<char>& of_key_heads) const;

  /// The approximate number of multiply-adds of the reference for one row.
  virtual double row_operations(const Call& call) const = 0;
  /// Those of all rows, as plain loops of an implementation take them.
  virtual double multiply_adds(const Call& call) const;
  /// The operations that a benchmark counts.
  virtual double useful_operations(const Call& call, const Inputs& inputs) const = 0;
  /// k as a fill gives it is divided by this.
  virtual double key_divisor(const Call&) const { return 1; }
};

const Operator& operator_of(const Call& call);

/// All rows of a small call, in the order b, h, i.
std::vector<ResultValues> reference_rows(const Call& call, const Inputs& inputs);

}  // namespace attest

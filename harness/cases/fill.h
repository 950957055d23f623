// Test data as a function of the case line alone.
//
// Every element comes from its logical index, the tensor and the seed: a hash, then only integers and
// + - * / sqrt in float64, so that the bits are the same on every machine, compiler, layout and thread count.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/cases/sequence_mask.h"
#include "reference/call/problem.h"

namespace attest {

/// 64 well-mixed bits from a counter (Steele, Lea and Flood's SplitMix64 finaliser, applied to each word).
std::uint64_t hash_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// Uniform in [0, 1), 53 bits.
double hash_uniform(std::uint64_t bits);

/// Draws of one stream with mean 0 and variance 1. Irwin-Hall: the sum of twelve 16-bit uniforms less six, which is
/// exact.
class NormalDraws {
 public:
  NormalDraws(std::uint64_t seed, std::uint64_t stream);
  double at(std::uint64_t index) const;

 private:
  std::array<std::uint64_t, 3> words_;  ///< of each hash, what doesn't depend on the index
};

/// Values of q, k, v, do or parts of a merge. Rounded to the storage type by the caller.
class TensorFill {
 public:
  TensorFill(const Problem& problem, TensorId id);
  double at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const;

 private:
  double normal(std::uint64_t index, std::uint64_t stream) const;
  double uniform(std::uint64_t index, std::uint64_t stream) const;
  double integer(std::uint64_t index, std::int64_t largest) const;
  double cancelling(std::uint64_t index, std::int64_t l, std::int64_t d) const;
  double mixed(std::uint64_t index, std::uint64_t row) const;
  double activation(std::int64_t b, std::int64_t h, std::int64_t d, std::uint64_t index) const;

  /// In the order of tensor_fills().
  enum class Kind {
    normal,
    uniform,
    spread,
    ties,
    onehot,
    constant,
    denormal,
    huge,
    integer,
    cancel,
    mixed,
    infinite,
    largest,
    activations
  };
  Kind kind_ = Kind::normal;
  TensorId id_;
  std::uint64_t stream_;  ///< of random numbers: each tensor has its own
  bool is_value_;         ///< v, or do, which meets v
  Index4 shape_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::array<NormalDraws, 4> normals_;
  double amplitude_ = 1;  ///< of spread, constant, denormal and huge; of infinite and largest the probability
  double tiny_ = 1;
  double largest_ = kInfinity;  ///< what infinite and largest put in
};

/// Values of a mask at its own (unbroadcast) indices; 0 or 1 for boolean masks.
class MaskFill {
 public:
  explicit MaskFill(const Problem& problem);
  /// The same fills for a tensor of other extents, such as a block mask.
  MaskFill(const Fill& fill, bool additive, const Index4& shape, const Problem& problem);
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

 private:
  std::optional<bool> shows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
  double additive_at(double probability, std::uint64_t index) const;
  double uniform(std::uint64_t stream, std::uint64_t index) const;

  Fill fill_;
  bool additive_;
  Index4 shape_;
  std::uint64_t seed_;
  NormalDraws normals_;
  double smallest_finite_, large_;
  std::optional<SequenceMask> sequence_;  ///< where it is the fill
};

/// Element `index` of an input that is nothing but numbers (reference/call/tensor_table.h).
double input_value(const Problem& problem, TensorId input, std::uint64_t stream, std::uint64_t index);

/// The logsumexp of a part of a merge for one of the rows of all batches and heads; -inf where it is empty.
double part_lse_value(const Problem& problem, std::int64_t part, std::uint64_t row, std::uint64_t rows);

/// ALiBi slopes and sink logits, one for each query head or each batch and head, as the accumulator's type holds them;
/// empty without.
std::vector<double> make_slopes(const Problem& problem);
std::vector<double> make_sinks(const Problem& problem);
/// Page numbers, as many for each batch as the longest sequence may have, shuffled by the seed; -1 beyond the last one.
std::vector<std::int32_t> make_page_table(const Problem& problem);

}  // namespace attest

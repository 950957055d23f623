// The inputs of one case: storage that owns them, filled from the case line or read from a file.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "harness/cases/tensor_storage.h"
#include "reference/call/problem.h"
#include "reference/call/tensor_table.h"
#include "reference/softmax/key_place.h"

namespace attest {

/// Owns the input tensors of a case. Movable; views stay valid while it lives.
class CaseInputs {
 public:
  /// The tensors of the case, in the order of the table of tensors.
  std::vector<TensorId> list() const;
  bool has(TensorId id) const { return there_[index(id)]; }
  TensorStorage& at(TensorId id) { return storage_[index(id)]; }
  const TensorStorage& at(TensorId id) const { return storage_[index(id)]; }
  /// Storage for a tensor of the call, as it lies there, filled with padding. A file's call needs not say the tensor.
  TensorStorage& add(const Call& call, TensorId id);
  /// Such storage; `seen` are the extents as a kernel sees them.
  TensorStorage& add(TensorId id, TensorStorage storage, const Index4& seen);

  Inputs views() const;

 private:
  static constexpr std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  std::array<TensorStorage, static_cast<std::size_t>(TensorId::out)> storage_;
  std::array<Index4, static_cast<std::size_t>(TensorId::out)> seen_{};
  std::array<bool, static_cast<std::size_t>(TensorId::out)> there_{};
  std::optional<std::int64_t> latent_columns_;  ///< of the values that lie in the keys
};

/// Sets feature d of a key or value of one head, which lies at `place`.
void set_cached(CaseInputs& inputs, const Call& call, Cache cache, const KeyPlace& place, std::int64_t head,
                std::int64_t d, double value);

/// Throws UserError when the storage type can't hold a value of the fill.
CaseInputs make_inputs(const Problem& problem, int threads = 1);

/// Makes the tensors that a file does not hold: slopes, sinks, page table and block mask.
void add_small_inputs(const Problem& problem, CaseInputs& inputs);

/// Makes what a backward pass is given of its forward one, saved_o and saved_lse: the reference's results for these
/// inputs, rounded where they are stored. With `keep` only what isn't there yet.
void save_forward(const Problem& problem, CaseInputs& inputs, int threads = 1, bool keep = false);

}  // namespace attest

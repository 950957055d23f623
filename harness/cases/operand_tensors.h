// The tensors of a case file that rotate, normalise and scale queries, keys and values: tables, positions, weights,
// factors, and scales of codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/cases/inputs.h"
#include "harness/cases/safetensors.h"
#include "reference/call/call.h"

namespace attest {

/// Whether it is one of them.
constexpr bool is_of_operands(TensorId id) { return id >= TensorId::cos && id <= TensorId::query_scales; }

/// Reads an input that the call has. Axes of one element may be left out; tables may have more rows than the call
/// needs, and packed sequences have one row after the other. Throws UserError, `where` (the file) in front, where the
/// tensor is missing, has another shape or type, where a factor isn't finite, or a position is no row of the tables.
void read_operand_tensor(const TensorFile& file, const std::string& where, const Call& call, TensorId id,
                         CaseInputs& inputs);

/// What read_operand_tensor() reads, of a call without packing.
FileTensor operand_tensor(const Inputs& inputs, const Call& call, TensorId id);

/// Reads q_scales, k_scales and v_scales where the call has them, with all four axes. Those of rows in pages lie beside
/// the pages of the file, which are as many as `pages` says; `page_table` of the file says whose they are. Throws as
/// above.
void read_code_scales(const TensorFile& file, const std::string& where, const Call& call,
                      std::optional<std::int64_t> pages, CaseInputs& inputs);

}  // namespace attest

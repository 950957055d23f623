// What storage holds before anybody writes to it: NaNs whose payloads nobody computes. Outputs hold one, what lies
// around inputs another: a NaN that was read beside an input and handed on is no output that was left unwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/base/types.h"

namespace attest {

/// Fills the storage of an output with the pattern of this type: elements that nobody touched are recognised by it.
void fill_pattern(std::span<std::byte> bytes, DType dtype);

/// Fills the storage of an input: what its elements don't cover keeps this padding. Booleans are 1, integers -1.
void fill_padding(std::span<std::byte> bytes, DType dtype);

/// Whether element number `element` of an output still holds its pattern.
bool is_pattern(const std::byte* bytes, DType dtype, std::size_t element);

/// How many of `count` elements don't: the first of them is number `first`, each lies `stride` behind the one before.
std::int64_t count_written(const std::byte* bytes, DType dtype, std::int64_t first, std::int64_t count,
                           std::int64_t stride);

}  // namespace attest

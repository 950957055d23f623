// What storage holds before anybody writes to it: a NaN whose payload nobody computes.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/types.h"

namespace attest {

/// Fills storage with the pattern of this type: elements that nobody touched are recognised by it.
void fill_pattern(std::vector<std::byte>& bytes, DType dtype);

/// Whether element number `element` of the storage still holds it.
bool is_pattern(const std::vector<std::byte>& bytes, DType dtype, std::size_t element);

}  // namespace attest

// The version that a file of results states.
#pragma once

#include <string>

namespace attest {

/// Throws UserError, in one line that begins with `name`, unless `schema` is a version that this program reads: a whole
/// number from 1 to `newest`.
void require_schema(const std::string& name, const std::string& schema, int newest);

}  // namespace attest

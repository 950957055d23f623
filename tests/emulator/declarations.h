// Declarations for the emulator: every value of every statement, and any mixture of them.
#pragma once

#include <string>
#include <vector>

#include "harness/cases/random.h"
#include "tests/emulator/emulator.h"

namespace attest::emulator {

/// A mixture that a kernel for this storage type could declare. A statement that would mean nothing beside the others
/// keeps its default.
Emulated random_declaration(Random& random, DType dtype);

/// Every statement alone, with each of its values, beside the defaults of the type.
struct Statement {
  std::string name;
  Emulated emulated;
};
std::vector<Statement> every_statement(DType dtype);

/// Accumulates in the type's accumulator and rounds once at every step: the least that can be declared.
Arithmetic plain_arithmetic(DType dtype);

}  // namespace attest::emulator

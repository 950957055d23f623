// Random cases over everything that this version computes, a function of a seed alone.
//
// Most sizes stand at the edges of tiles and one beside them, at 0 and 1, and at primes, the others anywhere; options
// come from the samples of the table's rows or, if they are numbers, from anywhere in their classes, in a new order
// each time, where they can stand beside what was drawn before.
#pragma once

#include <optional>
#include <string>

#include "harness/cases/random.h"
#include "reference/options/options.h"

namespace attest {

/// Of softmax attention, or of one of the other operators.
Problem random_softmax_case(Random& random);
Problem random_other_case(Random& random);

/// Mostly softmax attention.
Problem random_case(Random& random);

/// A value for the option that suits the problem, as text; nullopt where none is to be had.
std::optional<std::string> random_value(const Option& option, const Problem& problem, Random& random);

/// Multiply-adds of the reference, about; elements of the tensors where these are more.
double random_case_cost(const Problem& problem);

}  // namespace attest

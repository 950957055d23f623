// Fills as classes of values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/options/case_line.h"
#include "reference/options/feature.h"

namespace attest {

/// Usual numbers in half of the draws, in the others anything that the fill takes.
Fill make_fill(const FillName& fill, std::uint64_t draw);

/// A class for each of `fills`, which outlive the feature. `of` gives nullptr where there is nothing to fill.
Feature fill_feature(std::string name, const std::vector<FillName>& fills,
                     std::function<const Fill*(const Problem&)> of, std::function<void(Problem&, Fill)> set);

}  // namespace attest

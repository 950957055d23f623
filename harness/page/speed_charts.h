// Charts of one benchmark file: for a page, and as pictures of their own. Each is empty where the file has nothing to
// show.
#pragma once

#include <string>
#include <vector>

#include "harness/page/sections.h"
#include "harness/page/timings.h"

namespace attest {

/// Every sample, a line of marks for each backend, with the interval of its median.
std::string samples_chart(const std::string& case_line, const std::vector<const Timing*>& timings, PageContext& page);
/// What the machine could do at most at each intensity, and what was done: of cases in f64, or of all others.
std::string roofline_chart(const std::vector<Timing>& timings, const BenchmarkFile& file, bool f64, PageContext& page);
/// Speed against a size; cases that differ in this size alone, as `family` tells, are joined.
std::string speed_chart(const std::vector<Timing>& timings, const std::string& title, std::int64_t Timing::*size,
                        std::string Timing::*family, PageContext& page);
/// Milliseconds of run() against the swept size, a line for each backend and curve. Empty without a sweep.
std::string sweep_chart(const BenchmarkFile& file, const std::vector<Timing>& timings, PageContext& page);
std::string error_chart(const std::vector<Timing>& timings, PageContext& page);
/// Upload, run and download of one case.
std::string split_chart(const std::string& case_line, const std::vector<const Timing*>& timings, PageContext& page);
/// Times of each case against its fastest backend.
std::string ratios_to_fastest(const std::vector<Timing>& timings, PageContext& page);

/// One of them by name, as SVG: `roofline`, `peers` or `errors`. Throws UserError for another name.
std::string picture_of(const BenchmarkFile& file, const std::string& what);

}  // namespace attest

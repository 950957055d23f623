#include "harness/cli/bench_rows.h"

#include <fmt/format.h>

#include "harness/base/statistics.h"

namespace attest {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.6g}", seconds * 1e3); }

std::string timed_from(const BenchLine& line) {
  if (!line.apart) return "here";
  return line.sandbox.empty() ? "apart" : "apart, sandbox";
}

std::vector<std::string> row_of(const BenchCase& result, const BenchLine& line) {
  if (!line.wrong.empty()) {
    return {result.case_line,
            line.backend,
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            timed_from(line),
            "no speed: " + line.wrong.text};
  }
  const bool interval = line.interval.confidence > 0;
  return {result.case_line,
          line.backend,
          milliseconds(line.median()),
          interval ? milliseconds(line.interval.low) : "",
          interval ? milliseconds(line.interval.high) : "",
          interval ? fmt::format("{:.3g}", line.interval.confidence) : "",
          std::to_string(line.seconds.size()),
          fmt::format("{:.4g}", line.spread()),
          milliseconds(line.total_seconds),
          milliseconds(line.steps.prepare),
          milliseconds(median(line.steps.upload)),
          milliseconds(median(line.steps.download)),
          fmt::format("{:.5g}", line.gflops),
          fmt::format("{:.3g}", line.error_over_bound),
          line.ulps ? fmt::format("{:.3g}", line.ulps->median) : "",
          line.ulps ? fmt::format("{:.3g}", line.ulps->largest) : "",
          timed_from(line),
          line.disturbed.empty() ? "" : "disturbed: " + line.disturbed};
}

}  // namespace

Table bench_rows(const std::vector<BenchCase>& results) {
  Table table({{"case"},
               {"backend"},
               {"run ms", true},
               {"run ms, low", true},
               {"run ms, high", true},
               {"covered", true},
               {"samples", true},
               {"spread", true},
               {"total ms", true},
               {"prepare ms", true},
               {"upload ms", true},
               {"download ms", true},
               {"GFLOP/s", true},
               {"error/bound", true},
               {"ulps, median", true},
               {"ulps, largest", true},
               {"timed"},
               {"remark"}});
  for (const BenchCase& result : results) {
    for (const BenchLine& line : result.lines) table.add(row_of(result, line));
  }
  return table;
}

}  // namespace attest

#include "harness/speed/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "harness/base/statistics.h"

namespace attest {

void print_bench_table(const BenchCase& result) {
  fmt::print("\n{}\n", result.case_line);
  fmt::print("  {:<10} {:>10} {:>8} {:>10} {:>7} {:>8} {:>6} {:>11}  {:>6} {}\n", "backend", "run ms", "spread",
             "total ms", "GFLOP/s", "of FMA", "GB/s", "error/bound", "ratio", "to the fastest (quartiles)");
  const BenchLine* fastest = nullptr;
  for (const BenchLine& line : result.lines) {
    if (line.wrong.empty() && (!fastest || line.median() < fastest->median())) fastest = &line;
  }
  std::vector<const BenchLine*> order;
  for (const BenchLine& line : result.lines) order.push_back(&line);
  std::stable_sort(order.begin(), order.end(), [](const BenchLine* a, const BenchLine* b) {
    return a->wrong.empty() != b->wrong.empty() ? a->wrong.empty() : a->median() < b->median();
  });
  for (const BenchLine* line : order) {
    if (!line->wrong.empty()) {
      fmt::print("  {:<10} no speed: {}\n", line->backend, line->wrong);
      continue;
    }
    const double low = quantile(line->seconds, 0.25) / quantile(fastest->seconds, 0.75);
    const double high = quantile(line->seconds, 0.75) / quantile(fastest->seconds, 0.25);
    const std::string range = line == fastest ? "" : fmt::format("({:.2f} to {:.2f})", low, high);
    fmt::print("  {:<10} {:>10.3f} {:>7.0f}% {:>10.3f} {:>7.1f} {:>8.2f} {:>6.1f} {:>11.2g}  {:>5.2f}x {}\n",
               line->backend, line->median() * 1e3, line->spread() * 100, line->total_seconds * 1e3, line->gflops,
               line->roof_fraction, line->gbps, line->error_over_bound, line->median() / fastest->median(), range);
  }
  std::fflush(stdout);
}

}  // namespace attest

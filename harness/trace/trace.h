// The walk-through of one small case: every stage of every head with its shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/plot/heat_map.h"
#include "harness/trace/stage.h"

namespace attest {

struct TraceSettings {
  bool causal = false;                      ///< add the causal mask to the case
  std::optional<std::int64_t> batch, head;  ///< only this one
};

struct HeadTrace {
  std::int64_t batch = 0, head = 0;
  std::vector<Stage> stages;
};

struct Trace {
  std::string label, about, scaling;  ///< `scaling`: the scale and where it comes from
  std::vector<std::string> queries, keys;
  std::vector<Stage> stages;  ///< of all heads: shapes, embeddings, projections
  std::vector<HeadTrace> heads;
  std::vector<std::vector<HeatMap>> heat_maps;  ///< of each head: without and with the causal mask, or one if alike
};

/// Throws UserError for a case too large to read, and for a batch or head that it lacks.
Trace trace_case(const Case& source, const TraceSettings& settings);

void print_trace(const Trace& trace, int digits);

/// Every stage that is printed.
std::string trace_json(const Trace& trace);

}  // namespace attest

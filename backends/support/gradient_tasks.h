// What a thread of fused gradients takes at a time: key heads and a range of their keys. Tasks follow from the call
// alone, and no two of them add to the same element: a result has the same bits with any number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/support/tiles.h"
#include "backends/support/visibility.h"
#include "reference/call/call.h"
#include "reference/call/tensor_table.h"

namespace attest::support {

/// Key heads [first, last), counted batch by batch, and keys of each. Part n of a head gives the nth summand of its dq.
struct GradientTask {
  std::int64_t first = 0, last = 0;
  KeyRange keys;
  std::int64_t part = 0;
};

struct GradientTasks {
  std::vector<GradientTask> list;
  std::int64_t parts = 1;  ///< of each head
};

inline GradientTasks make_gradient_tasks(const Call& call, std::int64_t tile) {
  constexpr std::int64_t kWanted = 32, kLeastTiles = 4;
  const std::int64_t heads = call.batch * call.key_heads;
  const bool has_dmask = call.wants(Output::dmask);
  // Heads that add to one element of dmask follow each other in one task, and so do keys.
  const bool together =
      has_dmask && ((!call.mask->kept[0] && call.batch > 1) || (!call.mask->kept[1] && call.query_heads > 1));
  const std::int64_t step = together ? std::max<std::int64_t>(heads, 1) : 1;
  const std::int64_t tiles = divide_up(call.key_length, tile);
  GradientTasks tasks;
  if (!has_dmask || call.mask->kept[3]) {
    tasks.parts = std::min(divide_up(kWanted * step, std::max<std::int64_t>(heads, 1)), tiles / kLeastTiles);
    tasks.parts = std::max<std::int64_t>(tasks.parts, 1);
  }
  const std::int64_t each = divide_up(tiles, tasks.parts) * tile;
  for (std::int64_t first = 0; first < heads; first += step) {
    // The first keys first: with a causal mask the most queries see them, and short tasks belong to the end.
    for (std::int64_t part = 0; part < tasks.parts; ++part) {
      const KeyRange keys = KeyRange{part * each, (part + 1) * each}.within(0, call.key_length);
      tasks.list.push_back({first, first + step, keys, part});
    }
  }
  return tasks;
}

}  // namespace attest::support

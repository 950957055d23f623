// The pieces that a call is cut into, for threads: rows of queries that share a head of keys, against a range of keys.
//
// The query heads of a group follow each other as rows: keys and values are read once for all of them, and a single
// query (decoding) still gives a block of rows. Where there are few rows, keys are cut as well, and what the parts have
// summed is put together afterwards. Rows don't depend on each other, and the cut of keys depends on the call alone: a
// result has the same bits with any number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/simd/kernels.h"
#include "backends/support/tiles.h"
#include "backends/support/visibility.h"
#include "reference/call/call.h"

namespace attest::simd {

/// Rows [row, row + rows) of the group, query i of head h being row (h - first head) * stored queries + i.
struct Task {
  std::int64_t b = 0, group = 0, row = 0, rows = 0;
  bool few = false;  ///< the whole group has few rows; what other tasks of it have, any number of threads may cut off
  support::KeyRange keys;            ///< that some row sees, cut at a multiple of kTileKeys
  std::int64_t part = 0, parts = 1;  ///< which of how many ranges of keys
  std::int64_t partial = 0;          ///< number of its first row among all rows of parts
};

/// Whether a forward call has keys, and scores that stay as the products leave them but for a mask.
inline bool has_plain_scores(const Call& call) {
  return call.runs_forward() && !call.wants_gradients() && !call.wants_scores() && call.key_length > 0 &&
         call.value_dim > 0 && !call.softcap && !call.blocks && !call.select && !call.alibi && !call.sinks &&
         call.dropout == 0 && !call.has_stored_scales();
}

/// A row of a task.
struct TaskRow {
  std::int64_t h, i;
};
inline TaskRow row_of(const Call& call, const Task& task, std::int64_t r) {
  const std::int64_t stored = call.stored_queries(task.b), row = task.row + r;
  return {task.group * call.heads_per_group() + row / stored, row % stored};
}

/// Tasks of few rows, cut by their keys.
inline std::vector<Task> cut_keys(const Call& call, const std::vector<Task>& tasks, std::int64_t block,
                                  std::int64_t most_parts) {
  constexpr std::int64_t kPartKeys = 512;
  std::vector<Task> cut;
  std::int64_t partial = 0;
  for (const Task& task : tasks) {
    const std::int64_t keys = task.keys.last - task.keys.first;
    const std::int64_t rows = call.stored_queries(task.b) * call.heads_per_group();
    const bool whole = rows > 2 * block || call.wants_scores();
    const std::int64_t parts = whole ? 1 : std::clamp(keys / kPartKeys, std::int64_t{1}, most_parts);
    const std::int64_t each =
        support::divide_up(support::divide_up(std::max<std::int64_t>(keys, 1), parts), kTileKeys) * kTileKeys;
    for (std::int64_t part = 0; part < parts; ++part) {
      Task piece = task;
      piece.keys.first = std::min(task.keys.first + part * each, task.keys.last);
      piece.keys.last = part + 1 == parts ? task.keys.last : std::min(piece.keys.first + each, task.keys.last);
      piece.part = part;
      piece.parts = parts;
      if (parts > 1) {
        piece.partial = partial;
        partial += task.rows;
      }
      cut.push_back(piece);
    }
  }
  return cut;
}

/// Rows are multiples of `block` but for the last of a group; the most work comes first.
inline std::vector<Task> make_tasks(const Call& call, const support::Visibility& visibility, std::int64_t block,
                                    int threads) {
  // Packing a tile of keys pays with many rows; a few tasks for each thread keep all of them busy to the end. Rows of a
  // mask that heads share must still be in the second-level cache when the next head comes.
  const bool shares_mask = call.mask && !call.mask->kept[1];
  const std::int64_t most_rows = shares_mask ? 256 : 1024;
  constexpr std::int64_t kTasksForEach = 4, kWantedParts = 16;
  const std::int64_t heads = std::max<std::int64_t>(call.batch * call.key_heads, 1);
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < call.batch; ++b) {
    const std::int64_t rows = call.stored_queries(b) * call.heads_per_group();
    const std::int64_t wanted = std::min(support::divide_up(kTasksForEach * threads, heads), rows / (2 * block));
    const std::int64_t tiles = std::max({support::divide_up(rows, most_rows), wanted, std::int64_t{1}});
    const std::int64_t height = std::max(support::divide_up(support::divide_up(rows, tiles), block) * block, block);
    for (std::int64_t first = 0; first < rows; first += height) {
      Task task{b, 0, first, std::min(height, rows - first), rows <= kFewRows, {}};
      for (std::int64_t r = 0; r < task.rows; ++r) {
        const support::RowKeys seen = visibility.row(b, row_of(call, task, r).i);
        task.keys.widen(seen.prefix);
        task.keys.widen(seen.band);
      }
      task.keys.first = task.keys.first / kTileKeys * kTileKeys;
      for (task.group = 0; task.group < call.key_heads; ++task.group) tasks.push_back(task);
    }
  }
  if (const std::int64_t most_parts = support::divide_up(kWantedParts, heads); most_parts > 1)
    tasks = cut_keys(call, tasks, block, most_parts);
  const auto has_more_work = [](const Task& a, const Task& b) {
    return a.rows * (a.keys.last - a.keys.first) > b.rows * (b.keys.last - b.keys.first);
  };
  if (!std::is_sorted(tasks.begin(), tasks.end(), has_more_work))  // which needs none of the memory of sorting
    std::stable_sort(tasks.begin(), tasks.end(), has_more_work);
  return tasks;
}

}  // namespace attest::simd

// The smallest file that still fails, for cases whose data no line can say.
#pragma once

#include <functional>
#include <optional>

#include "harness/cases/case.h"
#include "harness/cases/safetensors.h"

namespace attest {

/// The inputs of a case as a file of its own: every tensor dense, keys out of their pages, packed sequences as padded
/// ones, dropout's decisions as a tensor, options in the metadata; no results of others. Nothing for what is not taken
/// apart: block masks, other operators.
std::optional<TensorFile> plain_file(const Case& source);

struct ShrunkFile {
  TensorFile file;
  int tried = 0;
  bool finished = true;
};

/// Greedy and deterministic, as shrink.h: rows, keys, heads, batches and features are taken away in halves and then one
/// by one, options dropped, then the numbers made 0, 1 or integers, all of a tensor and then each. `fails` runs a
/// candidate; `go_on` is asked before each.
ShrunkFile shrink_file(const TensorFile& failing, const std::function<bool(const Case&)>& fails,
                       const std::function<bool()>& go_on);

}  // namespace attest

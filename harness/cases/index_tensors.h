// Index tensors of a case file, checked entry by entry before anything is addressed with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cases/safetensors.h"

namespace attest {

/// Cumulative lengths: B + 1 integers from 0 to `rows`, never smaller than the one before. Gives the B lengths.
/// Throws UserError naming the tensor and the entry; `where` (the file) stands in front.
std::vector<std::int64_t> lengths_of_starts(const FileTensor& starts, const std::string& where, const std::string& name,
                                            std::int64_t rows);

/// Lengths, one for each sequence: integers from 0 to `most`.
std::vector<std::int64_t> checked_lengths(const FileTensor& lengths, const std::string& where, const std::string& name,
                                          std::int64_t most);

/// Cached keys of each batch: [batch] integers up to `most`, one of which is `most`. The list is empty where all are.
std::vector<std::int64_t> counts_of_past(const FileTensor& counts, const std::string& where, std::int64_t batch,
                                         std::int64_t most);

/// A page table: [batch, n] integers. Entry (b, i) is looked at when sequence b has keys there (`used[b]` pages), and
/// must then lie in [0, pages).
void check_page_table(const FileTensor& table, const std::string& where, const std::vector<std::int64_t>& used,
                      std::int64_t pages);

}  // namespace attest

#include "harness/cases/index_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/user_error.h"

namespace attest {
namespace {

void require_integers(const FileTensor& tensor, const std::string& where, const std::string& name, std::size_t axes) {
  const bool integers = tensor.dtype == "I32" || tensor.dtype == "I64";
  if (integers && tensor.shape.size() == axes) return;
  throw UserError(fmt::format("{}: {} {} of {}: {} axis or axes of I32 or I64 are wanted", where, name,
                              tensor.shape_text(), tensor.dtype, axes));
}

}  // namespace

std::vector<std::int64_t> lengths_of_starts(const FileTensor& starts, const std::string& where, const std::string& name,
                                            std::int64_t rows) {
  require_integers(starts, where, name, 1);
  if (starts.size() < 1 || starts.at(0) != 0) throw UserError(where + ": " + name + " must begin with 0");
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 1; n < starts.size(); ++n) {
    const auto before = static_cast<std::int64_t>(starts.at(n - 1)), now = static_cast<std::int64_t>(starts.at(n));
    if (now < before) {
      throw UserError(fmt::format("{}: {} decreases at entry {}: {} after {}", where, name, n, now, before));
    }
    if (now > rows) {
      throw UserError(fmt::format("{}: {} overruns at entry {}: {} of {} rows", where, name, n, now, rows));
    }
    lengths.push_back(now - before);
  }
  const auto last = static_cast<std::int64_t>(starts.at(starts.size() - 1));
  if (last != rows) {
    throw UserError(
        fmt::format("{}: {} ends at {} and leaves {} of {} rows over", where, name, last, rows - last, rows));
  }
  return lengths;
}

std::vector<std::int64_t> checked_lengths(const FileTensor& lengths, const std::string& where, const std::string& name,
                                          std::int64_t most) {
  require_integers(lengths, where, name, 1);
  std::vector<std::int64_t> list;
  for (std::int64_t b = 0; b < lengths.size(); ++b) {
    const auto length = static_cast<std::int64_t>(lengths.at(b));
    if (length < 0 || length > most)
      throw UserError(fmt::format("{}: {}[{}] = {} is out of range: 0 to {}", where, name, b, length, most));
    list.push_back(length);
  }
  return list;
}

std::vector<std::int64_t> counts_of_past(const FileTensor& counts, const std::string& where, std::int64_t batch,
                                         std::int64_t most) {
  require_integers(counts, where, "past_lengths", 1);
  if (counts.size() != batch) {
    throw UserError(fmt::format("{}: past_lengths {}: a count for each of {} batches is wanted", where,
                                counts.shape_text(), batch));
  }
  std::vector<std::int64_t> list;
  std::int64_t longest = 0, shortest = most;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto count = static_cast<std::int64_t>(counts.at(b));
    if (count < 0 || count > most) {
      throw UserError(
          fmt::format("{}: past_lengths[{}] = {} is out of range: past_k has {} rows", where, b, count, most));
    }
    longest = std::max(longest, count);
    shortest = std::min(shortest, count);
    list.push_back(count);
  }
  if (longest != most && batch > 0) {
    throw UserError(fmt::format("{}: past_lengths: the longest has {} keys and past_k {} rows; cut past_k and past_v",
                                where, longest, most));
  }
  return shortest == most ? std::vector<std::int64_t>{} : list;
}

void check_page_table(const FileTensor& table, const std::string& where, const std::vector<std::int64_t>& used,
                      std::int64_t pages) {
  require_integers(table, where, "page_table", 2);
  for (std::size_t b = 0; b < used.size(); ++b) {
    for (std::int64_t i = 0; i < used[b]; ++i) {
      const double entry = table.at(static_cast<std::int64_t>(b) * table.shape[1] + i);
      if (entry >= 0 && entry < static_cast<double>(pages)) continue;
      throw UserError(
          fmt::format("{}: page_table[{},{}] = {} is out of range: k has {} pages", where, b, i, entry, pages));
    }
  }
}

}  // namespace attest

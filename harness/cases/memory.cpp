#include "harness/cases/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/machine.h"
#include "harness/base/user_error.h"
#include "harness/cases/tensor_bytes.h"
#include "reference/call/tensor_place.h"

namespace attest {
namespace {

/// A case that needs less than this is never refused: the harness itself takes more.
constexpr double kAlwaysThere = 16 << 20;

/// Of a tensor's storage those that are ever touched.
double bytes_used(const TensorPlace& place, DType type) {
  double sum = 0;
  const std::size_t size = bytes_of(type, static_cast<std::size_t>(*place.elements));
  for (const ByteRange& range : used_ranges(place, type, size)) sum += static_cast<double>(range.size());
  return sum;
}

}  // namespace

double storage_bytes(const Call& p) {
  double bytes = 0;
  for (const TensorRow& row : tensor_rows()) {
    if (has_tensor(p, row.id)) bytes += bytes_used(place_of(p, row.id), type_of(p, row.id));
  }
  return bytes;
}

double memory_needed(const Call& call) {
  const double reference =
      8.0 * static_cast<double>(call.key_length) * static_cast<double>(call.key_dim + call.value_dim + 8);
  return 2 * storage_bytes(call) + reference;
}

std::optional<std::string> beyond_walking(const Call& call) {
  const auto batch = static_cast<double>(call.batch);
  const struct {
    const char* name;
    double count;
  } sizes[] = {
      {"batch times heads", batch * static_cast<double>(std::max(call.query_heads, call.key_heads))},
      {"batch times rows", batch * static_cast<double>(std::max(call.query_length, call.key_length))},
      {"a head's dimension", static_cast<double>(std::max(call.key_dim, call.value_dim))},
  };
  for (const auto& [name, count] : sizes) {
    if (count > kMostRows) return fmt::format("{} is {:.0f}", name, count);
  }
  return std::nullopt;
}

void check_memory(const Call& call, const std::string& label, double copies) {
  const double needed = memory_needed(call) + copies * storage_bytes(call);
  const double available = needed < kAlwaysThere ? kAlwaysThere : available_memory_bytes();
  if (needed > available) {
    throw UserError(fmt::format("\"{}\" needs about {:.1f} GiB of memory, {:.1f} GiB are available; make it smaller",
                                label, needed / 0x1p30, available / 0x1p30));
  }
  if (const auto what = beyond_walking(call)) {
    throw UserError(
        fmt::format("\"{}\": {}, {:.0f} is the most that is tried; make it smaller", label, *what, kMostRows));
  }
}

}  // namespace attest

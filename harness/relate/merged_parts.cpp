#include "harness/relate/merged_parts.h"

#include <array>
#include <cmath>
#include <numbers>

#include "reference/arithmetic/producer.h"
#include "reference/merge/part_merge.h"

namespace attest {
namespace {

/// A number as a result of this type holds it.
double stored_as(DType type, double number) {
  std::array<std::byte, sizeof(double)> bytes{};
  store(bytes.data(), type, 0, number);
  return load(bytes.data(), type, 0);
}

std::vector<PartOfRow> computed_parts(const std::vector<KeyPart>& parts, const Index4& at, std::int64_t columns,
                                      double lse_unit) {
  std::vector<PartOfRow> rows;
  for (const KeyPart& part : parts) {
    PartOfRow& row = rows.emplace_back();
    row.lse = part.outputs.lse(at[0], at[1], at[2]) / lse_unit;
    for (std::int64_t c = 0; c < columns; ++c) row.out.push_back(part.outputs.out(at[0], at[1], at[2], c));
  }
  return rows;
}

std::vector<PartOfRow> expected_parts(const std::vector<KeyPart>& parts, const Index4& at, std::int64_t columns,
                                      double lse_unit) {
  std::vector<PartOfRow> rows;
  for (const KeyPart& part : parts) {
    PartOfRow& row = rows.emplace_back();
    const BoundedElement& lse = part.bounds().at(TensorId::lse, at);
    row.lse = lse.expected / lse_unit;
    row.lse_error = lse.bound / lse_unit;
    for (std::int64_t c = 0; c < columns; ++c) {
      const BoundedElement& o = part.bounds().at(TensorId::out, {at[0], at[1], at[2], c});
      row.out.push_back(o.expected);
      row.out_error.push_back(o.bound);
    }
  }
  return rows;
}

}  // namespace

Differences differences_of_merged(const Call& whole, const GuardedOutputs& of_whole, const std::vector<KeyPart>& parts,
                                  const MakeBounds& whole_bounds, const std::string& lse_base) {
  const double lse_unit = lse_base == "2" ? std::numbers::log2e : 1;
  const bool wants_lse = whole.wants(Output::lse);
  Differences found;
  each_index({whole.batch, whole.query_heads, whole.query_length, 1}, [&](auto b, auto h, auto i, auto) {
    if (i >= whole.stored_queries(b)) return;
    const Index4 at{b, h, i, 0};
    const MergedRow merged = merge_parts(computed_parts(parts, at, whole.value_dim, lse_unit));
    std::vector<Difference> differing;
    const auto hold = [&](TensorId result, std::int64_t c, double other) {
      ++found.elements;
      const double one = of_whole.at(result, b, h, i, c);
      if (!have_same_bits(one, stored_as(type_of(whole, result), other)))
        differing.push_back({result, {b, h, i, c}, one, other});
    };
    for (std::int64_t c = 0; c < whole.value_dim; ++c) hold(TensorId::out, c, merged.out[static_cast<std::size_t>(c)]);
    if (wants_lse) hold(TensorId::lse, 0, merged.lse * lse_unit);
    if (differing.empty()) return;
    const auto exact = expected_parts(parts, at, whole.value_dim, lse_unit);
    const MergedRow bound = bound_merge(exact, merge_parts(exact), reference_arithmetic());
    for (Difference& one : differing) {
      const BoundedElement& of_one = whole_bounds().at(one.result, one.at);
      const double of_merge =
          one.result == TensorId::lse ? bound.lse * lse_unit : bound.out[static_cast<std::size_t>(one.at[3])];
      one.expected = of_one.expected;
      one.allowed = of_one.bound + of_merge;
      found.add(one);
    }
  });
  return found;
}

}  // namespace attest

#include "harness/cases/operand_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/user_error.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"

namespace attest {
namespace {

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

bool is_table(TensorId id) { return id == TensorId::cos || id == TensorId::sin; }
bool is_position(TensorId id) { return id == TensorId::q_positions || id == TensorId::k_positions; }

/// Whether the tensor's shape is the wanted one, but for axes of one element.
bool fits(const FileTensor& tensor, const std::vector<std::int64_t>& wanted) {
  return without_ones(tensor.shape) == without_ones(wanted);
}

/// Of a table of rope: as many pairs, and as many positions as the call reaches; there may be more.
bool fits_table(const FileTensor& tensor, const Call& call, const std::vector<std::int64_t>& wanted) {
  const std::size_t axes = tensor.shape.size();
  std::int64_t reached = std::max(call.key_length, call.rope_positions);
  for (std::int64_t b = 0; b < call.batch && call.rope_positions == 0; ++b)
    reached = std::max(reached, call.query_count(b) + call.diagonal_offset(b));
  return axes >= 2 && tensor.shape[axes - 1] == wanted[3] && tensor.shape[axes - 2] >= reached &&
         tensor.size() == tensor.shape[axes - 1] * tensor.shape[axes - 2];
}

const FileTensor& needed(const TensorFile& file, const std::string& where, TensorId id) {
  const auto found = file.tensors.find(std::string(name_of(id)));
  if (found != file.tensors.end()) return found->second;
  throw UserError(fmt::format("{}: tensor \"{}\" is missing; the options need it", where, name_of(id)));
}

[[noreturn]] void refuse(const FileTensor& tensor, const std::string& where, TensorId id,
                         const std::vector<std::int64_t>& wanted, const char* type) {
  FileTensor shape;
  shape.shape = wanted;
  throw UserError(fmt::format("{}: {} {} of {}: {} of {} is wanted", where, name_of(id), tensor.shape_text(),
                              tensor.dtype, shape.shape_text(), type));
}

/// An element that a kernel would read beyond the tables with, or make no number of.
void check_element(double value, const Call& call, TensorId id, const std::string& where, std::int64_t at) {
  const std::string name(name_of(id));
  if (is_position(id) && !(value >= 0 && value < static_cast<double>(call.rope_positions))) {
    throw UserError(
        fmt::format("{}: {}[{}] = {} is out of range: rope.positions={}", where, name, at, value, call.rope_positions));
  }
  if (!std::isfinite(value))
    throw UserError(fmt::format("{}: {}[{}] is {}: finite numbers are wanted", where, name, at, value));
}

}  // namespace

void read_operand_tensor(const TensorFile& file, const std::string& where, const Call& call, TensorId id,
                         CaseInputs& inputs) {
  const FileTensor& tensor = needed(file, where, id);
  TensorStorage& storage = inputs.add(call, id);
  const TensorPlace& place = storage.place();
  const Index4& n = place.shape;
  std::vector<std::int64_t> wanted(n.begin(), n.end());
  if (is_packed(call, id)) wanted = {place.starts.back(), n[1], n[3]};
  const bool typed = is_position(id) ? tensor.dtype == "I32" || tensor.dtype == "I64" : tensor.is_numeric();
  if (!typed || !(is_table(id) ? fits_table(tensor, call, wanted) : fits(tensor, wanted)))
    refuse(tensor, where, id, wanted, is_position(id) ? "I32 or I64" : "a floating type");
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    if (l >= place.rows(b) || (is_table(id) && l >= tensor.shape[tensor.shape.size() - 2])) return;
    const std::int64_t row =
        is_packed(call, id) ? place.starts[static_cast<std::size_t>(b)] + l : (b * n[1] + h) * n[2] + l;
    const std::int64_t at = row * n[3] + d;
    check_element(tensor.at(at), call, id, where, at);
    storage.set(b, h, l, d, tensor.at(at));
  });
}

void read_code_scales(const TensorFile& file, const std::string& where, const Call& call,
                      std::optional<std::int64_t> pages, CaseInputs& inputs) {
  for (const TensorId id : {TensorId::q_scales, TensorId::k_scales, TensorId::v_scales}) {
    if (!has_tensor(call, id)) continue;
    const FileTensor& tensor = needed(file, where, id);
    TensorStorage& storage = inputs.add(call, id);
    const Index4 n = stored_shape(call, id);
    const bool in_pages = pages && id != TensorId::q_scales && !broadcast_axes(call, id)[2];
    const std::vector<std::int64_t> wanted = {in_pages ? *pages : n[0], n[1], n[2], n[3]};
    if (!tensor.is_numeric() || tensor.shape != wanted) refuse(tensor, where, id, wanted, "a floating type");
    for (std::int64_t at = 0; at < tensor.size(); ++at) check_element(tensor.at(at), call, id, where, at);
    const auto read = [&](std::int64_t from, std::int64_t to) {
      each_index({1, n[1], n[2], n[3]}, [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
        storage.set(to, h, l, d, tensor.at(((from * n[1] + h) * n[2] + l) * n[3] + d));
      });
    };
    for (std::int64_t b = 0; b < n[0] && !in_pages; ++b) read(b, b);
    if (!in_pages) continue;
    const FileTensor& table = file.tensors.at("page_table");
    const Inputs views = inputs.views();
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t i = 0; i < page_count(call, b); ++i)
        read(static_cast<std::int64_t>(table.at(b * table.shape[1] + i)), views.page(b, i));
    }
  }
}

FileTensor operand_tensor(const Inputs& inputs, const Call& call, TensorId id) {
  const ConstTensor& from = inputs.at(id);
  const Index4 n = stored_shape(call, id);
  FileTensor tensor;
  tensor.dtype = is_position(id) ? "I32" : file_type_of(from.dtype);
  tensor.shape.assign(n.begin(), n.end());
  tensor.bytes.resize(bytes_of(from.dtype, static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3])));
  std::int64_t at = 0;
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const bool is_stored =
        !from.starts || l < (row_of(id).axes[2] == Axis::queries ? call.query_count(b) : call.key_count(b));
    const double value = is_stored ? load(from.data, from.dtype, from.offset(b, h, l, d)) : 0;
    store(tensor.bytes.data(), from.dtype, at++, value);
  });
  return tensor;
}

}  // namespace attest

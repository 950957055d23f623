#include "harness/backends/isolation/serialized_inputs.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "reference/call/tensor_table.h"

namespace attest {
namespace {

template <class View>
Json tensor_json(std::size_t region, const View& view) {
  return {{"region", region}, {"dtype", view.dtype}, {"shape", view.shape}, {"strides", view.strides}};
}

template <class Void>
AnyView<Void> view_from(const Json& entry, const GuardedArea& area) {
  return {area.data(entry.at("region").get<std::size_t>()), entry.at("dtype").get<DType>(),
          entry.at("shape").get<Index4>(), entry.at("strides").get<Index4>()};
}

/// Whether each of the ranges lies within one of the others. Both are in order.
bool lie_within(const std::vector<ByteRange>& ranges, const std::vector<ByteRange>& others) {
  return std::ranges::all_of(ranges, [&](const ByteRange& range) {
    const auto behind = std::ranges::upper_bound(others, range.first, {}, &ByteRange::first);
    return behind != others.begin() && range.end <= std::prev(behind)->end;
  });
}

}  // namespace

std::size_t SerializedInputs::add(const std::string& name, const ConstTensor& view) {
  // One memory for two tensors stays one, also where the second is a part of the first.
  const std::vector<ByteRange> used = used_ranges(view);
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    if (sources_[n].data == view.data && lie_within(used, sources_[n].used)) return n;
  }
  sources_.push_back({view.data, used});
  return regions_.add(name, span_bytes(view));
}

SerializedInputs::SerializedInputs(const Inputs& inputs, std::size_t offset) : regions_(offset) {
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id) || !inputs.has(row.id)) continue;
    const ConstTensor& tensor = inputs.at(row.id);
    const std::string name(row.name);
    Json& entry = description_[name] = tensor_json(add(name, tensor), tensor);
    if (!tensor.starts) continue;
    const auto bytes = static_cast<std::size_t>(tensor.shape[0] + 1) * sizeof(std::int64_t);
    sources_.push_back({tensor.starts, {{0, bytes}}});
    entry["starts"] = regions_.add("cu_seqlens of " + name, bytes);
  }
}

void SerializedInputs::copy_to(SharedFile& file) const {
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const Region& region = regions_.all()[n];
    file.fill(region, sources_[n].data, sources_[n].used);
    std::memset(file.pages(region), 0xff, region.lead());  // NaN in every type: reading before the start shows
  }
}

UnpackedInputs::UnpackedInputs(const Json& d, const GuardedArea& area) {
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id) || !d.contains(row.name)) continue;
    const Json& entry = d.at(std::string(row.name));
    auto view = view_from<const void>(entry, area);
    if (entry.contains("starts")) {
      view.starts = reinterpret_cast<const std::int64_t*>(area.data(entry.at("starts").get<std::size_t>()));
    }
    inputs.set(row.id, view);
  }
}

std::vector<std::pair<std::string, MutableTensor>> list_outputs(const Outputs& outputs) {
  std::vector<std::pair<std::string, MutableTensor>> list;
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id) && outputs.has(row.id)) list.emplace_back(row.name, outputs.at(row.id));
  }
  return list;
}

Json describe_outputs(const Outputs& outputs, RegionList& regions) {
  Json description;
  for (const auto& [name, view] : list_outputs(outputs)) {
    description[name] = tensor_json(regions.add(name, span_bytes(view)), view);
    if (view.starts) description[name]["starts"] = std::vector(view.starts, view.starts + view.shape[0] + 1);
  }
  return description;
}

Outputs unpack_outputs(const Json& d, const GuardedArea& area, std::vector<std::vector<std::int64_t>>& starts) {
  const auto view = [&](const Json& entry) {
    auto tensor = view_from<void>(entry, area);
    if (entry.contains("starts")) {
      starts.push_back(entry.at("starts").get<std::vector<std::int64_t>>());
      tensor.starts = starts.back().data();
    }
    return tensor;
  };
  starts.clear();
  starts.reserve(d.size());
  Outputs outputs;
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id) && d.contains(row.name)) outputs.set(row.id, view(d.at(std::string(row.name))));
  }
  return outputs;
}

Json describe_regions(const RegionList& regions) {
  Json list = Json::array();
  for (const Region& region : regions.all()) list.push_back({region.name, region.offset, region.bytes});
  return list;
}

std::vector<Region> regions_from(const Json& json) {
  std::vector<Region> list;
  for (const Json& entry : json) {
    list.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::size_t>(), entry.at(2).get<std::size_t>()});
  }
  return list;
}

}  // namespace attest

#include "harness/backends/isolation/parcels.h"

#include <cstring>
#include <string>
#include <vector>

#include "reference/operators/operator_tensors.h"

namespace attest {
namespace {

struct NamedInput {
  std::string name;
  ConstTensor Inputs::*place;
};

const std::vector<NamedInput>& named_inputs() {
  static const std::vector<NamedInput> list = [] {
    std::vector<NamedInput> names = {{"q", &Inputs::q},
                                     {"k", &Inputs::k},
                                     {"v", &Inputs::v},
                                     {"past_k", &Inputs::past_k},
                                     {"past_v", &Inputs::past_v}};
    for (const InputTensor& tensor : input_tensors()) names.push_back({std::string(tensor.name), tensor.place});
    return names;
  }();
  return list;
}

struct NamedNumbers {
  const char* name;
  std::span<const double> Inputs::*place;
};
constexpr NamedNumbers kNumbers[] = {{"slopes", &Inputs::slopes}, {"sinks", &Inputs::sinks}};

struct NamedOutput {
  const char* name;
  std::optional<MutableTensor> Outputs::*place;
};
constexpr NamedOutput kOutputs[] = {{"lse", &Outputs::lse},
                                    {"raw", &Outputs::raw},
                                    {"capped", &Outputs::capped},
                                    {"biased", &Outputs::biased},
                                    {"weights", &Outputs::weights},
                                    {"present_k", &Outputs::present_k},
                                    {"present_v", &Outputs::present_v},
                                    {"present_state", &Outputs::present_state}};

template <class View>
Json tensor_json(std::size_t region, const View& view) {
  return {{"region", region}, {"dtype", view.dtype}, {"shape", view.shape}, {"strides", view.strides}};
}

template <class Void>
AnyView<Void> view_from(const Json& entry, const GuardedArea& area) {
  return {area.data(entry.at("region").get<std::size_t>()), entry.at("dtype").get<DType>(),
          entry.at("shape").get<Index4>(), entry.at("strides").get<Index4>()};
}

}  // namespace

template <class View>
std::size_t InputParcel::add(const std::string& name, const View& view) {
  // One memory for two tensors stays one.
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    if (sources_[n].data == view.data && sources_[n].used == used_ranges(view)) return n;
  }
  sources_.push_back({view.data, used_ranges(view)});
  return regions_.add(name, span_bytes(view));
}

InputParcel::InputParcel(const Inputs& inputs, std::size_t offset) : regions_(offset) {
  for (const NamedInput& one : named_inputs()) {
    const ConstTensor& tensor = inputs.*one.place;
    if (!tensor.data) continue;
    Json& entry = description_[one.name] = tensor_json(add(one.name, tensor), tensor);
    if (tensor.starts) {
      const auto bytes = static_cast<std::size_t>(tensor.shape[0] + 1) * sizeof(std::int64_t);
      entry["starts"] = add("cu_seqlens of " + one.name, tensor.starts, bytes);
    }
  }
  if (const auto& mask = inputs.mask) {
    description_["mask"] = tensor_json(add("mask", *mask), *mask);
    description_["mask"]["additive"] = mask->additive;
  }
  if (const auto& pages = inputs.pages) {
    // A row of entries for each batch.
    const auto rows = static_cast<std::size_t>(inputs.q.shape[0] * pages->stride);
    description_["pages"] = {
        {"region", add("page_table", pages->entries, rows * 4)}, {"size", pages->size}, {"stride", pages->stride}};
  }
  if (const auto& blocks = inputs.blocks) {
    const auto bytes = static_cast<std::size_t>(inputs.q.shape[0] * blocks->heads * blocks->rows * blocks->columns);
    description_["blocks"] = {{"region", add("blocks", blocks->data, bytes)},
                              {"heads", blocks->heads},
                              {"rows", blocks->rows},
                              {"columns", blocks->columns},
                              {"rows_per_block", blocks->rows_per_block},
                              {"keys_per_block", blocks->keys_per_block}};
  }
  for (const NamedNumbers& one : kNumbers) {
    const std::span<const double> list = inputs.*one.place;
    if (list.empty()) continue;
    description_[one.name] = {{"region", add(one.name, list.data(), list.size_bytes())}, {"count", list.size()}};
  }
  if (inputs.keep) {
    const std::int64_t keys = inputs.past_k.data ? inputs.past_k.shape[2] + inputs.k.shape[2] : inputs.k.shape[2];
    const auto bytes = static_cast<std::size_t>(inputs.q.shape[0] * inputs.q.shape[1] * inputs.q.shape[2] * keys);
    description_["keep"] = {{"region", add("keep", inputs.keep, bytes)}};
  }
}

std::size_t InputParcel::add(const std::string& name, const void* data, std::size_t bytes) {
  sources_.push_back({data, {{0, bytes}}});
  return regions_.add(name, bytes);
}

void InputParcel::copy_to(SharedFile& file) const {
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const Region& region = regions_.all()[n];
    file.fill(region, sources_[n].data, sources_[n].used);
    std::memset(file.pages(region), 0xff, region.lead());  // NaN in every type: reading before the start shows
  }
}

UnpackedInputs::UnpackedInputs(const Json& d, const GuardedArea& area) {
  const auto at = [&](const Json& entry) { return area.data(entry.at("region").get<std::size_t>()); };
  for (const NamedInput& one : named_inputs()) {
    if (!d.contains(one.name)) continue;
    const Json& entry = d.at(one.name);
    ConstTensor& to = inputs.*one.place;
    to = view_from<const void>(entry, area);
    if (entry.contains("starts")) {
      to.starts = reinterpret_cast<const std::int64_t*>(area.data(entry.at("starts").get<std::size_t>()));
    }
  }
  if (d.contains("mask")) {
    const Json& m = d.at("mask");
    inputs.mask = MaskTensor{m.at("additive").get<bool>(), at(m), m.at("dtype").get<DType>(),
                             m.at("shape").get<Index4>(), m.at("strides").get<Index4>()};
  }
  if (d.contains("pages")) {
    const Json& p = d.at("pages");
    inputs.pages = PageTable{reinterpret_cast<const std::int32_t*>(at(p)), p.at("size").get<std::int64_t>(),
                             p.at("stride").get<std::int64_t>()};
  }
  if (d.contains("blocks")) {
    const Json& b = d.at("blocks");
    inputs.blocks = BlockMask{reinterpret_cast<const std::uint8_t*>(at(b)),
                              b.at("heads").get<std::int64_t>(),
                              b.at("rows").get<std::int64_t>(),
                              b.at("columns").get<std::int64_t>(),
                              b.at("rows_per_block").get<std::int64_t>(),
                              b.at("keys_per_block").get<std::int64_t>()};
  }
  for (const NamedNumbers& one : kNumbers) {
    if (!d.contains(one.name)) continue;
    const Json& entry = d.at(one.name);
    inputs.*one.place = {reinterpret_cast<const double*>(at(entry)), entry.at("count").get<std::size_t>()};
  }
  if (d.contains("keep")) inputs.keep = reinterpret_cast<const std::uint8_t*>(at(d.at("keep")));
}

std::vector<std::pair<std::string, MutableTensor>> list_outputs(const Outputs& outputs) {
  std::vector<std::pair<std::string, MutableTensor>> list = {{"o", outputs.out}};
  for (const NamedOutput& one : kOutputs) {
    if (outputs.*one.place) list.emplace_back(one.name, *(outputs.*one.place));
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
  outputs.out = view(d.at("o"));
  for (const NamedOutput& one : kOutputs) {
    if (d.contains(one.name)) outputs.*one.place = view(d.at(one.name));
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

#include "harness/isolation/messages.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace attest {
namespace {

constexpr std::size_t kMostBytes = 64u << 20;
constexpr std::chrono::microseconds kSpin{200};

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

Received receive_all(int socket, void* data, std::size_t bytes,
                     std::optional<std::chrono::steady_clock::time_point> end) {
  char* to = static_cast<char*>(data);
  // Most answers come at once, sooner than a sleeping process wakes up.
  const auto spin_end = std::chrono::steady_clock::now() + kSpin;
  while (bytes > 0) {
    if (std::chrono::steady_clock::now() < spin_end) {
      const ssize_t got = recv(socket, to, bytes, MSG_DONTWAIT);
      if (got > 0) {
        to += got;
        bytes -= static_cast<std::size_t>(got);
        continue;
      }
      if (got == 0) return Received::closed;
      if (errno == EAGAIN || errno == EINTR) {
        sched_yield();
        continue;
      }
    }
    int wait = -1;
    if (end) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Received::timeout;
      wait = static_cast<int>(std::min<std::int64_t>(left.count() + 1, 3'600'000));
    }
    pollfd ready{socket, POLLIN, 0};
    const int count = poll(&ready, 1, wait);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) continue;
    const ssize_t got = recv(socket, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

Json tensor_json(std::size_t region, DType dtype, const Index4& shape, const Index4& strides) {
  return {{"region", region}, {"dtype", static_cast<int>(dtype)}, {"shape", shape}, {"strides", strides}};
}

}  // namespace

bool send_message(int socket, const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t length = text.size();
  return send_all(socket, &length, sizeof length) && send_all(socket, text.data(), text.size());
}

Received receive_message(int socket, Json& message, std::optional<std::chrono::milliseconds> limit) {
  std::optional<std::chrono::steady_clock::time_point> end;
  if (limit) end = std::chrono::steady_clock::now() + *limit;
  std::uint64_t length = 0;
  Received result = receive_all(socket, &length, sizeof length, end);
  if (result != Received::message) return result;
  if (length > kMostBytes) return Received::closed;  // a worker that writes over its memory may say anything
  std::string text(length, '\0');
  result = receive_all(socket, text.data(), text.size(), end);
  if (result != Received::message) return result;
  message = Json::parse(text, nullptr, false);
  return message.is_discarded() ? Received::closed : Received::message;
}

InputParcel::InputParcel(const Inputs& inputs, std::size_t offset) : regions_(offset) {
  add_tensor("q", inputs.q);
  add_tensor("k", inputs.k);
  add_tensor("v", inputs.v);
  add_tensor("past_k", inputs.past_k);
  add_tensor("past_v", inputs.past_v);
  add_tensor("decay", inputs.decay);
  add_tensor("beta", inputs.beta);
  add_tensor("state", inputs.state);
  if (const auto& mask = inputs.mask) {
    ConstTensor view{mask->data, mask->dtype, mask->shape, mask->strides};
    std::size_t bytes = span_bytes(view);
    if (!mask->additive) bytes /= size_of(mask->dtype);  // one byte for each element
    description_["mask"] = tensor_json(add("mask", mask->data, bytes), mask->dtype, mask->shape, mask->strides);
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
  const auto numbers = [&](const char* name, std::span<const double> list) {
    if (list.empty()) return;
    description_[name] = {{"region", add(name, list.data(), list.size_bytes())}, {"count", list.size()}};
  };
  numbers("slopes", inputs.slopes);
  numbers("sinks", inputs.sinks);
  if (inputs.keep) {
    const std::int64_t keys = inputs.past_k.data ? inputs.past_k.shape[2] + inputs.k.shape[2] : inputs.k.shape[2];
    const auto bytes = static_cast<std::size_t>(inputs.q.shape[0] * inputs.q.shape[1] * inputs.q.shape[2] * keys);
    description_["keep"] = {{"region", add("keep", inputs.keep, bytes)}};
  }
}

std::size_t InputParcel::add(const std::string& name, const void* data, std::size_t bytes) {
  sources_.push_back(data);
  return regions_.add(name, bytes);
}

void InputParcel::add_tensor(const std::string& name, const ConstTensor& tensor) {
  if (!tensor.data) return;
  description_[name] =
      tensor_json(add(name, tensor.data, span_bytes(tensor)), tensor.dtype, tensor.shape, tensor.strides);
  if (tensor.starts) {
    const auto bytes = static_cast<std::size_t>(tensor.shape[0] + 1) * sizeof(std::int64_t);
    description_[name]["starts"] = add("cu_seqlens of " + name, tensor.starts, bytes);
  }
}

void InputParcel::copy_to(SharedFile& file) const {
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const Region& region = regions_.all()[n];
    std::memset(file.pages(region), 0xff, region.lead());  // NaN in every type: reading before the start shows
    if (region.bytes > 0) std::memcpy(file.data(region), sources_[n], region.bytes);
  }
}

UnpackedInputs::UnpackedInputs(const Json& d, const GuardedArea& area) {
  const auto at = [&](const Json& entry) { return area.data(entry.at("region").get<std::size_t>()); };
  const auto tensor = [&](const char* name, ConstTensor& to) {
    if (!d.contains(name)) return;
    const Json& entry = d.at(name);
    to = {at(entry), static_cast<DType>(entry.at("dtype").get<int>()), entry.at("shape").get<Index4>(),
          entry.at("strides").get<Index4>()};
    if (entry.contains("starts")) {
      to.starts = reinterpret_cast<const std::int64_t*>(area.data(entry.at("starts").get<std::size_t>()));
    }
  };
  tensor("q", inputs.q);
  tensor("k", inputs.k);
  tensor("v", inputs.v);
  tensor("past_k", inputs.past_k);
  tensor("past_v", inputs.past_v);
  tensor("decay", inputs.decay);
  tensor("beta", inputs.beta);
  tensor("state", inputs.state);
  if (d.contains("mask")) {
    const Json& m = d.at("mask");
    inputs.mask = MaskTensor{m.at("additive").get<bool>(), at(m), static_cast<DType>(m.at("dtype").get<int>()),
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
  const auto numbers = [&](const char* name, std::span<const double>& to) {
    if (!d.contains(name)) return;
    to = {reinterpret_cast<const double*>(at(d.at(name))), d.at(name).at("count").get<std::size_t>()};
  };
  numbers("slopes", inputs.slopes);
  numbers("sinks", inputs.sinks);
  if (d.contains("keep")) inputs.keep = reinterpret_cast<const std::uint8_t*>(at(d.at("keep")));
}

namespace {

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

}  // namespace

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
    description[name] = tensor_json(regions.add(name, span_bytes(view)), view.dtype, view.shape, view.strides);
    if (view.starts) description[name]["starts"] = std::vector(view.starts, view.starts + view.shape[0] + 1);
  }
  return description;
}

Outputs unpack_outputs(const Json& d, const GuardedArea& area, std::vector<std::vector<std::int64_t>>& starts) {
  const auto view = [&](const Json& entry) {
    MutableTensor tensor{area.data(entry.at("region").get<std::size_t>()),
                         static_cast<DType>(entry.at("dtype").get<int>()), entry.at("shape").get<Index4>(),
                         entry.at("strides").get<Index4>()};
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

Json to_json(const Arithmetic& a) {
  return {{"accumulator", static_cast<int>(a.accumulator)},
          {"stored_weights", static_cast<int>(a.stored_weights)},
          {"exp_ulps", a.exp_ulps},
          {"log_ulps", a.log_ulps},
          {"tanh_ulps", a.tanh_ulps},
          {"base2", a.base2},
          {"scale", static_cast<int>(a.scale)},
          {"division", static_cast<int>(a.division)},
          {"key_block", a.key_block},
          {"lazy_threshold", a.lazy_threshold},
          {"normalised_before_storage", a.normalised_before_storage},
          {"stored_scores", static_cast<int>(a.stored_scores)},
          {"score_stores", a.score_stores},
          {"sum_of_stored", a.sum_of_stored},
          {"flush_to_zero", a.flush_to_zero}};
}

Arithmetic arithmetic_from(const Json& j) {
  Arithmetic a;
  a.accumulator = static_cast<DType>(j.at("accumulator").get<int>());
  a.stored_weights = static_cast<DType>(j.at("stored_weights").get<int>());
  a.exp_ulps = j.at("exp_ulps").get<double>();
  a.log_ulps = j.at("log_ulps").get<double>();
  a.tanh_ulps = j.at("tanh_ulps").get<double>();
  a.base2 = j.at("base2").get<bool>();
  a.scale = static_cast<ScalePlacement>(j.at("scale").get<int>());
  a.division = static_cast<Division>(j.at("division").get<int>());
  a.key_block = j.at("key_block").get<std::int64_t>();
  a.lazy_threshold = j.at("lazy_threshold").get<double>();
  a.normalised_before_storage = j.at("normalised_before_storage").get<bool>();
  a.stored_scores = static_cast<DType>(j.at("stored_scores").get<int>());
  a.score_stores = j.at("score_stores").get<int>();
  a.sum_of_stored = j.at("sum_of_stored").get<bool>();
  a.flush_to_zero = j.at("flush_to_zero").get<bool>();
  return a;
}

Json to_json(const RegionList& regions) {
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

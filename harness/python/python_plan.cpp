#include "harness/python/python_plan.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"
#include "harness/cases/tensor_bytes.h"
#include "harness/python/exception_text.h"
#include "harness/python/object_text.h"
#include "harness/verdict/verdict.h"
#include "reference/call/launch.h"
#include "reference/call/tensor_table.h"
#include "reference/softmax/philox.h"

namespace attest {
namespace {

constexpr nb::dlpack::dtype kInt64 = {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int), 64, 1};

/// Runs of a plan after which its inputs are compared with what they were. A benchmark's samples come later, when data
/// that the callable changed would be a wrong result.
constexpr int kWatchedRuns = 3;

/// After a wrong address or the like, all that the process asks of its device fails.
bool device_is_lost = false;

/// Seconds; a clock that says more than a year counts in another unit, or from another beginning.
constexpr double kLongestRun = 3e7;

/// Bytes; more than this no machine has.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

std::size_t stated_bytes(const nb::object& value) {
  std::int64_t bytes = -1;
  if (!nb::try_cast(value, bytes)) throw BackendError("workspace() gave no int");
  if (bytes < 0 || bytes > kMostBytes) throw BackendError("workspace() gave " + std::to_string(bytes) + " bytes");
  return static_cast<std::size_t>(bytes);
}

Index4 dense(const Index4& shape) { return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}; }

/// The extents of a view as Python sees them.
Index4 visible_shape(const MutableTensor& view) {
  if (!view.starts) return view.shape;
  return {1, view.shape[1], view.starts[view.shape[0]], view.shape[3]};
}

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::vector<std::uint8_t> drawn_keep(const Call& c) {
  std::vector<std::uint8_t> keep;
  const std::uint64_t threshold = dropout_threshold(c.dropout);
  each_index({c.batch, c.query_heads, c.query_length, c.key_length}, [&](auto b, auto h, auto i, auto j) {
    keep.push_back(dropout_keeps(c.dropout_seed, threshold, b, h, i, j) ? 1 : 0);
  });
  return keep;
}

}  // namespace

struct PythonPlan::Wanted {
  std::string name;
  const MutableTensor* view;
};

PythonPlan::PythonPlan(const nb::object& step, const Call& call)
    : call_(call),
      arrays_(step.attr("tensors")),
      function_(step.attr("function")),
      ready_(step.attr("ready")),
      to_device_(step.attr("to_device")),
      unchanged_(step.attr("unchanged")),
      from_device_(step.attr("from_device")),
      synchronize_(step.attr("synchronize")),
      to_host_(step.attr("to_host")),
      device_time_(step.attr("device_time")),
      workspace_(stated_bytes(step.attr("workspace"))),
      constants_(nb::cast<nb::dict>(step.attr("constants"))) {
  for (const auto& [name, keyword] : nb::cast<nb::dict>(step.attr("arrays")))
    tensors_.emplace_back(object_text(nb::borrow(name)), object_text(nb::borrow(keyword)));
  for (const nb::handle name : step.attr("outputs")) names_.push_back(object_text(nb::borrow(name)));
  if (call_.dropout > 0 && takes("keep")) keep_ = drawn_keep(call_);
  if (call_.batch == 0) zeros_.assign(static_cast<std::size_t>(call_.query_heads), 0.0);
}

PythonPlan::~PythonPlan() {
  const nb::gil_scoped_acquire lock;
  result_.reset();
  readied_.reset();
  arguments_.reset();
  keywords_.reset();
  constants_.reset();
  function_.reset();
  ready_.reset();
  to_device_.reset();
  unchanged_.reset();
  from_device_.reset();
  moved_.clear();
  written_.clear();
  synchronize_.reset();
  to_host_.reset();
  device_time_.reset();
  arrays_ = ArrayKind(nb::str("numpy"));
}

bool PythonPlan::takes(std::string_view name) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& tensor) { return tensor.first == name; });
}

void PythonPlan::upload(const Inputs& inputs) {
  const nb::gil_scoped_acquire lock;
  if (device_is_lost)
    throw UnusableBackend(
        "an earlier case lost the device to this process; put the callable into a module: it then "
        "runs in a process of its own");
  try {
    bind(inputs);
    before_ = runs_ < kWatchedRuns ? fingerprint() : "";
    if (!ready_.is_none()) readied_ = ready_(*arguments_, **keywords_);
    if (!synchronize_.is_none()) synchronize_();
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

/// The arguments of the call, and where the tensors among them lie.
void PythonPlan::bind(const Inputs& in) {
  places_.clear();
  moved_.clear();
  written_.clear();
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id) || !in.has(row.id)) continue;
    places_.push_back({std::string(row.name), in.at(row.id).data, attest::span_bytes(in.at(row.id))});
  }
  const auto moved = [&](nb::object array, auto& list) {
    if (to_device_.is_none() || array.is_none()) return array;
    list.emplace_back(array, to_device_(array));
    return list.back().second;
  };
  const auto there = [&](nb::object array) { return moved(std::move(array), moved_); };
  const auto there_to_write = [&](const ConstTensor& view) { return moved(arrays_.of(view, true), written_); };
  const bool given_keep = in.keep() && call_.dropout == 0;
  if (given_keep && !takes("keep"))
    throw BackendError("the file says which weights are kept, and the callable has no parameter for that: `keep`");
  const bool new_pairs = !visible_.there() || visible_by_inputs(call_) || call_.dynamic;
  if (takes("visible") && new_pairs) visible_ = visible_pairs(launched(call_, in), in);
  if (takes("added")) added_ = added_scores(launched(call_, in), in);
  if (call_.append) {
    cache_.take(in);
    arguments_ =
        nb::make_tuple(there(arrays_.of(in.q())), there_to_write(cache_.keys()), there_to_write(cache_.values()));
  } else {
    arguments_ = call_.has_parts()
                     ? nb::make_tuple()
                     : nb::make_tuple(there(arrays_.of(in.q())), there(arrays_.of(in.k())), there(arrays_.of(in.v())));
  }
  keywords_ = nb::dict();
  for (const auto& [key, value] : constants_) keywords_[key] = value;
  for (const auto& [name, keyword] : tensors_) {
    nb::object array = shown(name, in);
    if (!array.is_none()) keywords_[keyword.c_str()] = there(std::move(array));
  }
}

/// The input that attest calls `name`; None where this call has none.
nb::object PythonPlan::shown(const std::string& name, const Inputs& in) const {
  if (name == "visible") return arrays_.of(visible_.bytes.data(), kBool, visible_.shape, visible_.strides);
  if (name == "added") return arrays_.of(added_.bytes.data(), type_of(added_.dtype), added_.shape, added_.strides);
  const auto view = [&](TensorId id) { return in.has(id) ? arrays_.of(in.at(id)) : nb::none(); };
  const bool additive = in.mask() && is_additive(*in.mask());
  if (name == "mask") return additive ? nb::none() : view(TensorId::mask);
  if (name == "bias") return additive ? view(TensorId::mask) : nb::none();
  if (name == "keep" && !in.keep() && !keep_.empty()) {
    const Index4 pairs = seen_shape(call_, TensorId::keep);
    return arrays_.of(keep_.data(), kBool, pairs, dense(pairs));
  }
  // Those of one or two axes are shown without the axes of extent 1.
  const auto flattened = [&](TensorId id, bool by_batch, std::size_t last) -> nb::object {
    if (!in.has(id)) return nb::none();
    const ConstTensor& t = in.at(id);
    const std::vector<std::int64_t> shape =
        by_batch ? std::vector{t.shape[0], t.shape[last]} : std::vector{t.shape[last]};
    const std::vector<std::int64_t> strides =
        by_batch ? std::vector{t.strides[0], t.strides[last]} : std::vector{t.strides[last]};
    // Without batches the slopes of heads are not stored, and nothing depends on them.
    if (id == TensorId::slopes && t.shape[0] == 0 && !by_batch)
      return arrays_.of(zeros_.data(), type_of(t.dtype), shape, std::vector<std::int64_t>{1});
    return arrays_.of(t.data, type_of(t.dtype), shape, strides);
  };
  if (name == "alibi_slopes") return flattened(TensorId::slopes, call_.slopes_per_batch(), 1);
  if (name == "sinks") return flattened(TensorId::sinks, false, 1);
  if (name == "past_lengths") return flattened(TensorId::past_lengths, false, 0);
  if (name == "query_lengths") return flattened(TensorId::query_lengths, false, 0);
  if (name == "key_lengths") return flattened(TensorId::key_lengths, false, 0);
  if (name == "page_table") return flattened(TensorId::page_table, true, 3);
  // Part by part: n,B,H,L,D and n,B,H,L.
  if (const auto id = value_named<TensorId>(name); id && row_of(*id).of == &OperatorTraits::parts) {
    if (!in.has(*id)) return nb::none();
    const ConstTensor& t = in.at(*id);
    std::vector<std::int64_t> shape = {call_.parts, call_.batch, t.shape[1], t.shape[2]},
                              strides = {call_.batch * t.strides[0], t.strides[0], t.strides[1], t.strides[2]};
    if (*id == TensorId::part_o) {
      shape.push_back(t.shape[3]);
      strides.push_back(t.strides[3]);
    }
    return arrays_.of(t.data, type_of(t.dtype), shape, strides);
  }
  const auto starts = [&](const std::int64_t* rows) {
    const std::int64_t shape[] = {call_.batch + 1}, strides[] = {1};
    return rows ? arrays_.of(rows, kInt64, shape, strides) : nb::none();
  };
  if (name == "query_starts") return starts(in.q().starts);
  if (name == "key_starts") return starts(in.k().starts);
  const std::optional<TensorId> id = value_named<TensorId>(name);
  if (!id || is_output(*id)) throw BackendError("there is no input called " + name);
  return view(*id);
}

std::string PythonPlan::fingerprint() const {
  Fingerprint all;
  for (const Place& place : places_) {
    if (place.bytes <= kCompactBytes) all.add(place.data, place.bytes);
  }
  return all.text();
}

bool PythonPlan::unchanged_on_device() const {
  return std::all_of(moved_.begin(), moved_.end(),
                     [&](const auto& arrays) { return nb::cast<bool>(unchanged_(arrays.first, arrays.second)); });
}

void PythonPlan::rethrow(const nb::python_error& error) const {
  if (!synchronize_.is_none()) {
    try {
      synchronize_();
    } catch (const nb::python_error&) {
      device_is_lost = true;
      throw CaseFault(Status::crashed, {Cause::lost_device},
                      exception_text(error) + "; the device is lost to the process");
    }
  }
  rethrow_for_verdict(error);
}

void PythonPlan::run() {
  const nb::gil_scoped_acquire lock;
  try {
    result_ = readied_.is_valid() ? nb::steal(PyObject_CallNoArgs(readied_.ptr()))
                                  : nb::steal(PyObject_Call(function_.ptr(), arguments_.ptr(), keywords_.ptr()));
    if (!result_.is_valid()) nb::raise_python_error();
    if (!synchronize_.is_none()) synchronize_();
    if (runs_++ < kWatchedRuns && !(fingerprint() == before_ && unchanged_on_device()))
      throw BackendError("changed its inputs");
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

std::optional<std::chrono::nanoseconds> PythonPlan::device_time() const {
  const nb::gil_scoped_acquire lock;
  if (device_time_.is_none()) return std::nullopt;
  try {
    const nb::object told = device_time_();
    if (told.is_none()) return std::nullopt;
    const double seconds = nb::cast<double>(told);
    if (!(seconds >= 0 && seconds < kLongestRun))
      throw BackendError("device_time() gave " + object_text(told) + ", which is no time of a run in seconds");
    return std::chrono::nanoseconds(std::llround(seconds * 1e9));
  } catch (const nb::python_error& error) {
    rethrow(error);
  } catch (const nb::cast_error&) {
    throw BackendError("device_time() gave no float and not None");
  }
}

std::vector<PythonPlan::Wanted> PythonPlan::wanted(const Outputs& out) const {
  const auto view_of = [&](const std::string& name) {
    const std::optional<TensorId> id = name == "o" ? TensorId::out : value_named<TensorId>(name);
    const MutableTensor* view = id ? out.find(*id) : nullptr;
    if (!view) throw BackendError("there is no output called " + name);
    return view;
  };
  std::vector<Wanted> list;
  for (const std::string& name : names_) list.push_back({name, view_of(name)});
  return list;
}

/// What the callable gave back for an output: the result itself where one is asked for, else an item of a dict or
/// tuple.
nb::object PythonPlan::result_for(const std::string& name, std::size_t number) const {
  if (nb::isinstance<nb::dict>(result_)) {
    if (!PyDict_Contains(result_.ptr(), nb::str(name.c_str()).ptr())) throw BackendError("returned no `" + name + "`");
    return result_[name.c_str()];
  }
  const bool several = nb::isinstance<nb::tuple>(result_) || nb::isinstance<nb::list>(result_);
  if (names_.size() == 1 && !several) return result_;
  const std::size_t count = several ? nb::len(result_) : 1;
  if (count != names_.size()) {
    throw BackendError("returned " + std::to_string(count) + " tensor(s) where " + std::to_string(names_.size()) +
                       " were asked for");
  }
  return result_[nb::int_(number)];
}

void PythonPlan::download(const Outputs& outputs) {
  const nb::gil_scoped_acquire lock;
  try {
    if (!result_.is_valid()) throw BackendError("nothing was run yet");
    if (result_.is_none()) throw BackendError("returned None");
    std::size_t number = 0;
    for (const Wanted& output : wanted(outputs)) hand_over(result_for(output.name, number++), output);
    if (!call_.append) return;
    for (const auto& [here, there] : written_) from_device_(here, there);
    cache_.give(outputs);
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

void PythonPlan::hand_over(const nb::object& result, const Wanted& output) const {
  const std::string which = names_.size() == 1 ? "" : " as `" + output.name + "`";
  const nb::object here = to_host_.is_none() ? result : nb::object(to_host_(result));
  const ReturnedArray array(here, output.view->dtype);
  if (!array.on_host()) throw BackendError("returned a tensor on another device" + which);
  MutableTensor view = *output.view;
  const Index4 all = visible_shape(view);
  std::span<const std::int64_t> shape = all;
  if (output.name == "dsinks") {  // one axis, as `sinks` has
    view.shape = {view.shape[1], 1, 1, 1};
    view.strides = {view.strides[1], 0, 0, 0};
    shape = shape.subspan(1, 1);
  }
  if (!array.has_shape(shape))
    throw BackendError("returned shape " + array.shape_text() + which + ", wanted is " + text_of(shape));
  if (const nb::dlpack::dtype type = type_of(view.dtype); array.type() != type)
    throw BackendError("returned " + name_of(array.type()) + which + ", wanted is " + name_of(type));
  for (const Place& place : places_) {
    if (array.overlaps(place.data, place.bytes)) throw BackendError("returned a view of " + place.name + which);
  }
  for (const auto& [name, cache] : {std::pair("k", cache_.keys()), std::pair("v", cache_.values())}) {
    if (array.overlaps(cache.data, attest::span_bytes(cache)))
      throw BackendError(std::string("returned a view of ") + name + which);
  }
  array.copy_to(view, call_.gap);
}

}  // namespace attest

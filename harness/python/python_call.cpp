#include "harness/python/python_call.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/backends/plugin/feature_words.h"
#include "harness/backends/plugin/flat_call.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {

namespace nb = nanobind;

namespace {

using Lengths = std::vector<std::int64_t>;

std::string text_of(auto value) { return std::string(name_of(value)); }

std::optional<std::int64_t> side_of(std::int64_t keys) {
  return keys == Call::kUnbounded ? std::nullopt : std::optional(keys);
}

std::optional<Lengths> lengths_of(const std::optional<LengthSpec>& spec, Lengths LengthSpec::*of) {
  if (!spec || ((*spec).*of).empty()) return std::nullopt;
  return (*spec).*of;
}

nb::object mask_of(const Call& call) {
  if (!call.mask) return nb::none();
  return nb::str(call.mask->additive ? "add" : "bool");
}

/// Names of what is asked for, as a callable gives them back. Of a forward pass the output itself always is.
nb::tuple output_names(const Call& call) {
  nb::list names;
  if (has_tensor(call, TensorId::out)) names.append("o");
  for (const Output output : call.outputs) {
    for (const TensorId id : outputs_of(call)) {
      if (id != TensorId::out && row_of(id).result == output) names.append(text_of(id));
    }
  }
  return nb::tuple(names);
}

/// The types of the outputs, by the names above.
nb::dict output_types(const Call& call) {
  nb::dict types;
  for (const TensorId id : outputs_of(call)) {
    if (is_cache(id)) continue;  // written in place
    const std::string name = id == TensorId::out ? "o" : text_of(id);
    types[name.c_str()] = text_of(type_of(call, id));
  }
  return types;
}

/// Whether a callable is told it by its key: a tensor, or what has no member here and a value that Python has a type
/// for.
bool is_told_by_key(const Option& option) {
  if (option.kind == OptionKind::tensor) return true;
  const bool has_type = option.kind != OptionKind::composite && option.kind != OptionKind::name;
  return has_type && !has_plugin_member(option.key);
}

/// An option that has no word stands there by its key.
std::vector<std::string> feature_names(const Call& call) {
  std::vector<std::string> names = feature_words(call);
  for (const Option* option : set_options(call)) {
    if (option->kind != OptionKind::tensor && !has_plugin_member(option->key)) names.push_back(option->key);
  }
  return names;
}

/// Of the options that a callable is told by their keys: key, whether it is a tensor, and the version that brought it.
std::vector<std::tuple<std::string, bool, int>> options_by_key() {
  std::vector<std::tuple<std::string, bool, int>> list;
  for (const Option& option : options()) {
    if (is_told_by_key(option)) list.emplace_back(option.key, option.kind == OptionKind::tensor, option.since);
  }
  return list;
}

/// What the call says of an option, by its kind; None where it says nothing.
nb::object option_value(const Call& call, const std::string& key) {
  const Option* option = find_option(key);
  const std::optional<std::string> text = option ? option->print(call) : std::nullopt;
  if (!text) return nb::none();
  if (text->empty()) return nb::bool_(true);  // a flag
  const OptionText value{*text, 1};
  switch (option->kind) {
    case OptionKind::integer: return nb::int_(parse_integer(value, std::numeric_limits<std::int64_t>::min(), key));
    case OptionKind::number: return nb::float_(parse_number(value, key));
    case OptionKind::numbers_per_head: return nb::cast(parse_numbers(value, key, true));
    default: return nb::str(text->c_str());
  }
}

nb::object mask_shape(const Call& call) {
  if (!call.mask) return nb::none();
  const Index4 shape = stored_shape(call, TensorId::mask);
  return nb::make_tuple(shape[0], shape[1], shape[2], shape[3]);
}

}  // namespace

void define_call(nb::module_& module) {
  module.def("options_by_key", &options_by_key);
  nb::class_<Call>(module, "Call",
                   "One attention call: sizes and options, all that a backend is told before data come.")
      .def_prop_ro("line", &print_call, "The call as a case line.")
      .def_prop_ro("features", &feature_names, "What it uses, in words of the case language.")
      .def_prop_ro(
          "op", [](const Call& c) { return text_of(c.op); }, "\"attention\", or a rule of linear attention.")
      .def_prop_ro(
          "pass_", [](const Call& c) { return text_of(c.pass); }, R"("forward", "backward" or "both".)")
      .def_prop_ro(
          "dtype", [](const Call& c) { return text_of(c.dtype); }, "Storage of q, k, v and the output.")
      .def_ro("batch", &Call::batch, "Sequences.")
      .def_ro("query_heads", &Call::query_heads, "Heads of q and of the output.")
      .def_ro("key_heads", &Call::key_heads, "Heads of k and v.")
      .def_ro("query_length", &Call::query_length, "Queries of a sequence.")
      .def_ro("key_length", &Call::key_length, "Keys of a sequence, cached ones included.")
      .def_ro("key_dim", &Call::key_dim, "Features of a query and of a key.")
      .def_ro("value_dim", &Call::value_dim, "Features of a value.")
      .def_prop_ro("scale", &Call::scale_value, "Of the scores, whether the case says it or not.")
      .def_ro("causal", &Call::causal, "Whether a query sees no key behind the diagonal.")
      .def_prop_ro(
          "align", [](const Call& c) { return text_of(c.align); }, "Of the diagonal: \"top-left\", \"bottom-right\".")
      .def_prop_ro(
          "window", [](const Call& c) { return std::pair(side_of(c.window_left), side_of(c.window_right)); },
          "Keys beside the diagonal, left and right; None: all.")
      .def_ro("prefix", &Call::prefix, "Keys that every query sees.")
      .def_ro("prefix_causal", &Call::prefix_causal, "Whether those right of the diagonal stay hidden.")
      .def_prop_ro(
          "query_lengths", [](const Call& c) { return lengths_of(c.lengths, &LengthSpec::query); },
          "Of each sequence; None: every one is query_length, or they are data.")
      .def_prop_ro(
          "key_lengths", [](const Call& c) { return lengths_of(c.lengths, &LengthSpec::key); },
          "Of each sequence; None: every one is key_length, or they are data.")
      .def_prop_ro(
          "query_segments", [](const Call& c) { return lengths_of(c.segments, &LengthSpec::query); },
          "Lengths of documents; None: those of the keys.")
      .def_prop_ro(
          "key_segments", [](const Call& c) { return lengths_of(c.segments, &LengthSpec::key); },
          "Lengths of documents; None: there is one.")
      .def_prop_ro("mask", &mask_of, "\"bool\", \"add\" or None.")
      .def_prop_ro(
          "mask_dtype",
          [](const Call& c) {
            return c.mask && c.mask->additive ? nb::object(nb::str(text_of(type_of(c, TensorId::mask)).c_str()))
                                              : nb::none();
          },
          "Storage of an additive mask, or None.")
      .def_prop_ro("mask_shape", &mask_shape, "As stored, 1 along broadcast axes, or None.")
      .def_prop_ro(
          "block_size",
          [](const Call& c) {
            return c.blocks ? std::optional(std::pair(c.blocks->rows, c.blocks->columns)) : std::nullopt;
          },
          "Queries and keys of a block of a block mask, or None.")
      .def_ro("softcap", &Call::softcap, "Or None.")
      .def_prop_ro(
          "alibi", [](const Call& c) { return c.alibi || !c.alibi_slopes.empty(); }, "Whether slopes come.")
      .def_prop_ro(
          "sinks", [](const Call& c) { return c.sinks || !c.sink_values.empty(); }, "Whether sinks come.")
      .def_ro("dropout", &Call::dropout, "Share of the weights that is dropped.")
      .def_ro("dropout_seed", &Call::dropout_seed, "0 without dropout.")
      .def_ro("past", &Call::past, "Cached keys, in tensors of their own: the most that any sequence has.")
      .def_prop_ro(
          "past_lengths",
          [](const Call& c) { return c.past_lengths.empty() ? std::nullopt : std::optional(c.past_lengths); },
          "Of each sequence; None: every one is past.")
      .def_ro("page_size", &Call::page_size, "Rows of a page of cached keys, or None.")
      .def_ro("dynamic", &Call::dynamic, "Whether lengths and page table are data of a run.")
      .def_ro("append", &Call::append, "Whether new keys and values are written into the cache.")
      .def_prop_ro("packed", &Call::packed_sequences, "Whether sequences lie one after another, without padding.")
      .def_prop_ro("outputs", &output_names, "Names of what is asked for: \"o\", \"lse\", \"weights\", ...")
      .def_prop_ro("output_types", &output_types, "Their types, by name: {\"o\": \"f32\"}.")
      .def("option", &option_value, nb::arg("key"), "What it says of an option, by the option's key; None: nothing.")
      .def("__repr__", [](const Call& c) { return "attest.Call('" + print_call(c) + "')"; });
}

}  // namespace attest

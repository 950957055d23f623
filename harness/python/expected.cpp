// attest.reference: the inputs of a case, what must come out, and how far off each element may be and is.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/memory.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/python/arrays.h"
#include "harness/python/define.h"
#include "harness/python/python_backend.h"

namespace attest {

namespace {

/// Numbers that NumPy owns from now on.
nb::object numbers(std::vector<double> values, const std::vector<std::int64_t>& shape) {
  auto* kept = new std::vector<double>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy, double>(kept->data(), extents.size(), extents.data(), owner));
}

/// A copy that outlives the case; types that NumPy lacks stand as float64, which holds them exactly.
nb::object copied(const ArrayKind& arrays, const ConstTensor& view) {
  if (view.dtype != DType::bf16 && (is_wide(view.dtype) || !is_floating(view.dtype)) && !is_packed_in_pairs(view.dtype))
    return arrays.of(view).attr("copy")();
  std::vector<double> values;
  each_index(view.shape, [&](auto b, auto h, auto l, auto d) {
    values.push_back(load(view.data, view.dtype, view.offset(b, h, l, d)));
  });
  return numbers(std::move(values), {view.shape[0], view.shape[1], view.shape[2], view.shape[3]});
}

nb::dict shown_inputs(const Inputs& in) {
  const ArrayKind arrays(nb::str("numpy"));
  nb::dict all;
  const auto add = [&](const char* name, const ConstTensor& view) {
    if (view.data) all[name] = copied(arrays, view);
  };
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v, TensorId::decay,
                            TensorId::beta, TensorId::state, TensorId::part_o, TensorId::part_lse, TensorId::q_scales,
                            TensorId::k_scales, TensorId::v_scales}) {
    if (in.has(id)) add(std::string(name_of(id)).c_str(), in.at(id));
  }
  if (const ConstTensor* mask = in.mask()) add(is_additive(*mask) ? "bias" : "mask", *mask);
  const auto list = [&](const char* name, const ConstTensor* given) {
    const std::vector<double> values = list_numbers(given);
    const auto count = static_cast<std::int64_t>(values.size()), heads = in.q().shape[1];
    if (count > heads)
      all[name] = numbers(values, {in.q().shape[0], heads});
    else if (count > 0)
      all[name] = numbers(values, {count});
  };
  list("alibi_slopes", in.slopes());
  list("sinks", in.sinks());
  return all;
}

nb::dict results_by_name(const Call& c, ResultValues values) {
  nb::dict all;
  for (const TensorId id : values_of<TensorId>()) {
    if (!is_output(id) || values.of(id).empty()) continue;
    const Index4 n = seen_shape(c, id);
    all[std::string(row_of(id).name).c_str()] = numbers(std::move(values.of(id)), {n[0], n[1], n[2], n[3]});
  }
  return all;
}

/// Inputs, expected values and bounds, each by name. `stated`: how the results are rounded.
nb::tuple reference(const std::string& what, const nb::dict& stated, int threads) {
  const Case source = case_from_argument(what);
  const Problem& p = source.problem;
  check_memory(p, source.label);
  const Producer producer{arithmetic_from(stated, p), {}};
  CaseInputs made;
  Expectation expected;
  {
    const nb::gil_scoped_release released;
    if (!source.inputs) made = make_inputs(p);
    expected = expect(p, (source.inputs ? *source.inputs : made).views(), {producer}, threads,
                      std::numeric_limits<double>::infinity());
  }
  // The reference's own rounding is part of what a comparison allows.
  Bounds bounds = expected.bounds.front();
  for (const TensorId id : outputs_of(p)) {
    for (std::size_t n = 0; n < bounds.of(id).size(); ++n) bounds.of(id)[n] += expected.own.of(id)[n];
  }
  return nb::make_tuple(shown_inputs((source.inputs ? *source.inputs : made).views()),
                        results_by_name(p, static_cast<ResultValues&>(expected)), results_by_name(p, std::move(bounds)),
                        source.label);
}

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

/// The largest error of these elements in units of their bounds, as every comparison measures it. All of one size.
double largest_error(const Numbers& got, const Numbers& expected, const Numbers& bounds) {
  double largest = 0;
  for (std::size_t n = 0; n < expected.size(); ++n)
    largest = std::max(largest, error_in_bounds(got.data()[n], expected.data()[n], bounds.data()[n]));
  return largest;
}

}  // namespace

void define_expected(nb::module_& module) {
  module.def("reference", &reference, nb::arg("case"), nb::arg("arithmetic"), nb::arg("threads"));
  module.def("largest_error", &largest_error, nb::arg("got"), nb::arg("expected"), nb::arg("bounds"));
}

}  // namespace attest

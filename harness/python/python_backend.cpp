#include "harness/python/python_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/backends/plugin/arithmetic_rules.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/python/exception_text.h"
#include "harness/python/object_text.h"
#include "harness/python/python_plan.h"
#include "harness/verdict/stated_conventions.h"
#include "reference/base/nearest.h"
#include "reference/options/case_line.h"

namespace attest {

namespace nb = nanobind;

namespace {

constexpr std::size_t kMaxString = 200;

std::string stated(const char* what, const nb::object& value) {
  if (!nb::isinstance<nb::str>(value)) throw BackendError(std::string(what) + " is no str");
  const auto text = nb::cast<std::string>(value);
  if (text.empty()) throw BackendError(std::string(what) + " is empty");
  if (text.size() > kMaxString) throw BackendError(std::string(what) + " is longer than 200 bytes");
  return printable_line(text);
}

/// A plain value of Python as JSON; NaN where it is none.
Json json_of(const std::string& field, const nb::handle& value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  throw UserError("arithmetic: " + field + " is no number, bool or str");
}

/// What plain loops in the accumulator's type do: what holds where a backend states nothing.
Arithmetic plain_arithmetic(const Call& call) {
  Arithmetic plain;
  plain.accumulator = plain.stored_weights = plain.stored_scores = plain.stored_parts = accumulator_of(call.dtype);
  return plain;
}

Conventions conventions_from(const nb::dict& stated_ones) {
  Conventions conventions;
  for (const auto& [key, value] : stated_ones) {
    const auto name = object_text(nb::borrow(key));
    const auto* field = std::find_if(kConventionFields.begin(), kConventionFields.end(),
                                     [&](const ConventionField& f) { return f.name == name; });
    if (field == kConventionFields.end()) {
      std::vector<std::string_view> names;
      for (const ConventionField& one : kConventionFields) names.push_back(one.name);
      throw UserError("conventions: there is no \"" + printable_line(name) +
                      "\"; nearest: " + nearest_name(name, names));
    }
    const std::string text = stated(name.c_str(), nb::borrow(value));
    if (!is_convention_value(name, text)) {
      throw UserError(fmt::format("conventions: {} is \"{}\"; it is one of {}", name, text, *convention_values(name)));
    }
    conventions.*(field->value) = text;
  }
  return conventions;
}

}  // namespace

namespace {

/// A field, and what was stated of it.
using Stated = std::vector<std::pair<std::string, nb::object>>;

Arithmetic arithmetic_from(const Stated& stated, const Call& call) {
  Json fields = plain_arithmetic(call);
  for (const auto& [field, value] : stated) {
    // A member of a member by a dot: value_sum.promote.
    const std::size_t dot = field.find('.');
    const std::string of = field.substr(0, dot), own = dot == std::string::npos ? "" : field.substr(dot + 1);
    const bool known = fields.contains(of) && (own.empty() || (fields[of].is_object() && fields[of].contains(own)));
    if (!known) {
      std::vector<std::string> names;
      for (const auto& [name, value_of_it] : fields.items()) {
        if (!value_of_it.is_object()) names.push_back(name);
        if (!value_of_it.is_object()) continue;
        for (const auto& [part, value_of_part] : value_of_it.items()) names.push_back(name + "." + part);
      }
      throw UserError("arithmetic: there is no \"" + printable_line(field) +
                      "\"; nearest: " + nearest_name(field, names));
    }
    const Json given = json_of(field, value);
    Json& wanted = own.empty() ? fields[of] : fields[of][own];
    const bool alike = wanted.is_number() ? given.is_number() : wanted.type() == given.type();
    if (!alike) throw UserError("arithmetic: " + field + " is " + given.dump() + ", of another type than wanted");
    wanted = given;
  }
  Arithmetic arithmetic;
  try {
    arithmetic = fields.get<Arithmetic>();
  } catch (const std::exception& error) {  // a name that no enumeration has
    throw UserError(std::string("arithmetic: ") + error.what());
  }
  if (const auto fault = fault_of(arithmetic)) throw UserError("arithmetic: " + *fault);
  return arithmetic;
}

}  // namespace

Arithmetic arithmetic_from(const nb::dict& stated, const Call& call) {
  Stated of_all;
  std::map<TensorId, Stated> of_results;  // "lse.log_ulps"
  for (const auto& [key, value] : stated) {
    const auto field = object_text(nb::borrow(key));
    const std::size_t dot = field.find('.');
    const TensorRow* row = dot == std::string::npos ? nullptr : find_row(field.substr(0, dot));
    if (row && is_output(row->id))
      of_results[row->id].emplace_back(field.substr(dot + 1), nb::borrow(value));
    else
      of_all.emplace_back(field, nb::borrow(value));
  }
  Arithmetic arithmetic = arithmetic_from(of_all, call);
  for (auto& [result, own] : of_results) {
    own.insert(own.begin(), of_all.begin(), of_all.end());
    arithmetic.of_results.push_back({result, arithmetic_from(own, call)});
  }
  return arithmetic;
}

PythonBackend::PythonBackend(nb::object object, std::string source) {
  const nb::gil_scoped_acquire lock;
  object_ = std::move(object);
  try {
    identity_ = {stated("name", object_.attr("name")), stated("library", object_.attr("library")),
                 stated("device", object_.attr("_stated_device")()), std::move(source)};
    contract_ = nb::cast<int>(object_.attr("contract"));
    conventions_ = conventions_from(nb::cast<nb::dict>(object_.attr("conventions")()));
    try_arithmetic();
  } catch (const nb::python_error& error) {
    throw BackendUnavailable(exception_text(error));
  } catch (const BackendError& error) {
    throw BackendUnavailable(error.what());
  } catch (const UserError& error) {
    throw BackendUnavailable(error.what());
  } catch (const nb::cast_error&) {
    throw BackendUnavailable("contract is no int, or conventions() gives no dict");
  }
}

/// A misspelt member is told before any case, where usual calls show it.
void PythonBackend::try_arithmetic() const {
  for (const char* line : {"seq=4 dim=4", "dtype=f16 seq=4 dim=4", "dtype=bf16 seq=4 dim=4", "dtype=f64 seq=4 dim=4"}) {
    const Call call = parse_case(line);
    nb::object given;
    try {
      given = object_.attr("arithmetic")(call);
    } catch (const nb::python_error&) {
      return;  // for the verdict of a call that it is asked for in earnest
    }
    if (nb::isinstance<nb::dict>(given)) (void)arithmetic_from(nb::cast<nb::dict>(given), call);
  }
}

PythonBackend::~PythonBackend() {
  const nb::gil_scoped_acquire lock;
  object_.reset();
}

std::optional<Refusal> PythonBackend::refuse(const Call& call) const {
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object why = object_.attr("_refusal")(call);
    if (why.is_none()) return std::nullopt;
    if (!nb::isinstance<nb::str>(why)) throw BackendError("refuse() gave no str and not None");
    return Refusal{printable_line(nb::cast<std::string>(why))};
  } catch (const nb::python_error& error) {
    rethrow_for_verdict(error);
  }
}

Arithmetic PythonBackend::arithmetic(const Call& call) const {
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object given = object_.attr("arithmetic")(call);
    if (!nb::isinstance<nb::dict>(given)) throw UserError("arithmetic() gave no dict");
    return arithmetic_from(nb::cast<nb::dict>(given), call);
  } catch (const UserError& error) {
    throw UnusableBackend(identity_.name + ": " + error.what());
  } catch (const nb::python_error& error) {
    rethrow_for_verdict(error);
  }
}

std::unique_ptr<Plan> PythonBackend::prepare(const Call& call) {
  const nb::gil_scoped_acquire lock;
  try {
    return std::make_unique<PythonPlan>(object_.attr("_step")(call), call);
  } catch (const nb::python_error& error) {
    rethrow_for_verdict(error);
  }
}

}  // namespace attest

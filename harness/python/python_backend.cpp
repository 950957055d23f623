#include "harness/python/python_backend.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/isolation/arithmetic_json.h"
#include "harness/plugin/arithmetic_rules.h"
#include "harness/python/exception_text.h"
#include "harness/python/object_text.h"
#include "harness/python/python_plan.h"

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
  throw BackendError("arithmetic: " + field + " is no number, bool or str");
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
    if (field == kConventionFields.end()) throw BackendError("conventions: there is no " + printable_line(name));
    conventions.*(field->value) = stated(name.c_str(), nb::borrow(value));
  }
  return conventions;
}

}  // namespace

Arithmetic arithmetic_from(const nb::dict& stated, const Call& call) {
  Json fields = plain_arithmetic(call);
  for (const auto& [key, value] : stated) {
    const auto field = object_text(nb::borrow(key));
    if (!fields.contains(field)) throw BackendError("arithmetic: there is no " + printable_line(field));
    const Json given = json_of(field, value);
    const bool alike = fields[field].is_number() ? given.is_number() : fields[field].type() == given.type();
    if (!alike) throw BackendError("arithmetic: " + field + " is " + given.dump() + ", of another type than wanted");
    fields[field] = given;
  }
  Arithmetic arithmetic;
  try {
    arithmetic = fields.get<Arithmetic>();
  } catch (const std::exception& error) {  // a name that no enumeration has
    throw BackendError(std::string("arithmetic: ") + error.what());
  }
  if (const auto fault = fault_of(arithmetic)) throw BackendError("arithmetic: " + *fault);
  return arithmetic;
}

PythonBackend::PythonBackend(nb::object object, std::string source) {
  const nb::gil_scoped_acquire lock;
  object_ = std::move(object);
  try {
    identity_ = {stated("name", object_.attr("name")), stated("library", object_.attr("library")),
                 stated("device", object_.attr("device")), std::move(source)};
    contract_ = nb::cast<int>(object_.attr("contract"));
    conventions_ = conventions_from(nb::cast<nb::dict>(object_.attr("conventions")()));
  } catch (const nb::python_error& error) {
    throw BackendUnavailable(exception_text(error));
  } catch (const BackendError& error) {
    throw BackendUnavailable(error.what());
  } catch (const nb::cast_error&) {
    throw BackendUnavailable("contract is no int, or conventions() gives no dict");
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
    return arithmetic_from(nb::cast<nb::dict>(object_.attr("arithmetic")(call)), call);
  } catch (const nb::python_error& error) {
    rethrow_for_verdict(error);
  } catch (const nb::cast_error&) {
    throw BackendError("arithmetic() gave no dict");
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

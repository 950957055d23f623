// str(object) of Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace attest {

/// With the interpreter's lock. Throws what the object's __str__ raises.
inline std::string object_text(const nanobind::object& object) {
  const auto text = nanobind::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) nanobind::raise_python_error();
  return nanobind::cast<std::string>(text);
}

}  // namespace attest

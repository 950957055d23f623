// str(object) of Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

namespace attest {

/// With the interpreter's lock. Throws what the object's __str__ raises.
inline std::string object_text(const nanobind::object& object) {
  const auto text = nanobind::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) nanobind::raise_python_error();
  return nanobind::cast<std::string>(text);
}

/// Of a str that may be a path: what is no UTF-8 is in it as the system gave it. With the interpreter's lock. Throws
/// what Python throws.
inline std::string path_text(const nanobind::handle& object) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes) == 0) nanobind::raise_python_error();
  const auto held = nanobind::steal<nanobind::bytes>(bytes);
  return {held.c_str(), held.size()};
}

/// The inverse.
inline nanobind::object path_object(const std::string& text) {
  nanobind::object object =
      nanobind::steal(PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  if (!object.is_valid()) nanobind::raise_python_error();
  return object;
}

/// Of a list of such.
inline std::vector<std::string> path_texts(const nanobind::handle& list) {
  std::vector<std::string> texts;
  for (const nanobind::handle one : list) texts.push_back(path_text(one));
  return texts;
}

}  // namespace attest

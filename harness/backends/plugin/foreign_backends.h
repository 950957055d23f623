// Backends from outside of this program, whatever they lie in: a shared library, or an object of Python.
//
// What the user named is one text (harness/base/backend_source.h). Only a program with an interpreter in it, attest's
// module for Python, can load objects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// How an interpreter in this process loads objects, each told in python_words(). Both throw UserError with a sentence
/// that doesn't name the object, and `make` BackendUnavailable.
struct PythonObjects {
  std::function<std::vector<std::string>(const std::string& object)> names;
  std::function<std::unique_ptr<Backend>(const std::string& object, const std::string& name, const Context&)> make;
};

/// Empty functions where there is no interpreter. Set once, before anything is loaded.
PythonObjects& python_objects();

/// The names of its backends, in its order. Loads it into this process, for good. Throws UserError.
std::vector<std::string> backends_in(const std::string& source);

/// Makes one of them. Throws UserError, and BackendUnavailable with its reason.
std::unique_ptr<Backend> make_foreign_backend(const std::string& source, const std::string& name,
                                              const Context& context);

}  // namespace attest

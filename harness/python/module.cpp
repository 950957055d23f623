// The module attest._attest: what the package in attest/ stands on. Its functions are the package's own affair.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/registry.h"
#include "harness/backends/plugin/feature_words.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/python_call.h"

namespace nb = nanobind;

NB_MODULE(_attest, module) {
  nb::exception<attest::UserError>(module, "UserError", PyExc_ValueError).attr("__doc__") =
      "A request that can't be carried out: what, where, what to do.";
  // Asked first: names in a message may be no UTF-8, of which Python makes another exception.
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const attest::UserError& error) {
          PyErr_SetString(static_cast<PyObject*>(type), attest::printable_line(error.what()).c_str());
        }
      },
      module.attr("UserError").ptr());
  nb::exception<attest::OutputError>(module, "OutputError", PyExc_OSError).attr("__doc__") =
      "Results that could not be written, after work was done.";
  attest::set_native_backends(attest::registered_backends());
  attest::define_call(module);
  module.def("all_features", &attest::all_feature_words);
  attest::define_checking(module);
  attest::define_searching(module);
  attest::define_relating(module);
  attest::define_timing(module);
  attest::define_expected(module);
  attest::define_program(module);
}

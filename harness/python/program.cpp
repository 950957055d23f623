// `python -m attest`: the command line in this interpreter, and what its workers need.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "harness/backends/plugin/foreign_backends.h"
#include "harness/base/backend_source.h"
#include "harness/base/installation.h"
#include "harness/base/restart.h"
#include "harness/base/user_error.h"
#include "harness/cli/cli.h"
#include "harness/python/chosen_backends.h"
#include "harness/python/define.h"
#include "harness/python/exception_text.h"
#include "harness/python/object_text.h"

namespace attest {

namespace nb = nanobind;

namespace {

/// The attest.Backend that Python imports under this name. With the interpreter's lock.
nb::object loaded(const std::string& object) {
  try {
    return nb::module_::import_("attest._load").attr("load")(path_object(object));
  } catch (const nb::python_error& error) {
    const nb::object own = nb::module_::import_("attest._attest").attr("UserError");
    throw UserError(error.matches(own) ? object_text(nb::borrow(error.value())) : exception_text(error));
  }
}

int main(const nb::object& given) {
  const std::vector<std::string> words = path_texts(given);
  for (const char* name : {"prefix", "base_prefix"})
    restart().readable.push_back(path_text(nb::module_::import_("sys").attr(name)));
  for (std::string& folder : path_texts(nb::module_::import_("sys").attr("path"))) {
    if (!folder.empty()) restart().readable.push_back(std::move(folder));
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const nb::gil_scoped_release released;
  return run_command_line(static_cast<int>(arguments.size()), arguments.data(), native_backends());
}

}  // namespace

void define_program(nb::module_& module) {
  module.def("main", &main, nb::arg("words"));
  module.def("set_data_folder", [](const std::string& folder) { installed_data() = folder; });
  module.def("set_interpreter", [](const std::string& file, const std::vector<std::string>& words) {
    restart() = {file, words};
  });
  module.attr("version") = ATTEST_VERSION;
  python_objects() = {[](const std::string& object) -> std::vector<std::string> {
                        const nb::gil_scoped_acquire lock;
                        return {nb::cast<std::string>(loaded(object).attr("name"))};
                      },
                      [](const std::string& object, const std::string& name, const Context& context) {
                        const nb::gil_scoped_acquire lock;
                        const nb::object backend = loaded(object);
                        if (nb::cast<std::string>(backend.attr("name")) != name)
                          throw BackendUnavailable("the object is called otherwise by now");
                        return make_python_backend(backend, std::string(kPythonObject) + object, context);
                      }};
}

}  // namespace attest

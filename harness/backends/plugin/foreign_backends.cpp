#include "harness/backends/plugin/foreign_backends.h"

#include "harness/backends/plugin/plugin_library.h"
#include "harness/base/backend_source.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

void require_interpreter() {
  if (python_objects().make) return;
  throw UserError(
      "there is no Python in this program; install attest for Python and say `python -m attest` in place of `attest`");
}

}  // namespace

PythonObjects& python_objects() {
  static PythonObjects objects;
  return objects;
}

std::vector<std::string> backends_in(const std::string& source) {
  const std::string object = python_object(source);
  if (object.empty()) return backends_of(*load_plugin(source));
  require_interpreter();
  return python_objects().names(python_words(source));
}

std::unique_ptr<Backend> make_foreign_backend(const std::string& source, const std::string& name,
                                              const Context& context) {
  const std::string object = python_object(source);
  if (object.empty()) return make_plugin_backend(load_plugin(source), name, context);
  require_interpreter();
  return python_objects().make(python_words(source), name, context);
}

}  // namespace attest

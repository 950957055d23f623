#include "harness/python/chosen_backends.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "harness/base/run_words.h"
#include "harness/base/user_error.h"
#include "harness/python/exception_text.h"
#include "harness/python/object_text.h"
#include "harness/python/python_backend.h"

namespace attest {

namespace nb = nanobind;

namespace {

std::span<const BackendEntry>& natives() {
  static std::span<const BackendEntry> list;
  return list;
}

/// An object of Python that outlives the lock under which it was taken.
std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            const nb::gil_scoped_acquire lock;
            delete held;
          }};
}

}  // namespace

Request::Request(const nb::object& request)
    : threads(nb::cast<int>(request.attr("threads"))), device(nb::cast<std::string>(request.attr("device"))) {
  run_words() = {path_texts(request.attr("run_words")), {}};
  if (nb::cast<bool>(request.attr("once"))) run_words().of_check = {"--once"};
  const auto seconds = nb::cast<double>(request.attr("timeout"));
  limits = {std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)),
            nb::cast<double>(request.attr("memory_gib"))};
  if (nb::cast<bool>(request.attr("isolate"))) isolation = limits;
}

ChosenBackends::ChosenBackends(const nb::object& request, std::span<const BackendEntry> native)
    : registry_(native.begin(), native.end()) {
  std::vector<std::string> sources;
  for (const nb::handle row : request.attr("backends")) {
    const std::string& name = texts_.emplace_back(nb::cast<std::string>(row[nb::int_(0)]));
    const std::string& source = texts_.emplace_back(path_text(row[nb::int_(2)]));
    const nb::object object = row[nb::int_(1)];
    if (object.is_none() && !source.empty()) {
      sources.push_back(source);
      if (name.empty()) continue;
    }
    names_.push_back(name);
    if (object.is_none()) continue;
    registry_.push_back({name,
                         [held = shared(object), source](const Context& context) {
                           const nb::gil_scoped_acquire lock;
                           return make_python_backend(*held, source, context);
                         },
                         ""});
  }
  const IsolationOptions limits = Request(request).limits;
  const nb::gil_scoped_release released;  // workers are asked which backends there are
  plugins_.emplace(sources, registry_, limits);
  for (const std::string& name : plugins_->names()) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }
  if (names_.empty()) {
    for (const BackendEntry& entry : native) {
      if (entry.make) names_.emplace_back(entry.name);
    }
  }
}

ChosenBackends::~ChosenBackends() = default;

BackendSet ChosenBackends::make(const Context& context, const std::optional<IsolationOptions>& isolation) const {
  return {plugins_->entries(), names_, context, isolation};
}

std::unique_ptr<Backend> make_python_backend(const nb::object& object, const std::string& source,
                                             const Context& context) {
  try {
    return std::make_unique<PythonBackend>(object.attr("_made_for")(context.threads, context.device), source);
  } catch (const nb::python_error& error) {
    const nb::object own = nb::module_::import_("attest._attest").attr("UserError");
    if (error.matches(own)) throw BackendUnavailable(object_text(nb::borrow(error.value())));
    throw BackendUnavailable(exception_text(error));
  }
}

void set_native_backends(std::span<const BackendEntry> native) { natives() = native; }
std::span<const BackendEntry> native_backends() { return natives(); }

}  // namespace attest

#include "harness/python/exception_text.h"

#include <filesystem>

#include "backends/backend.h"
#include "harness/base/interrupted.h"
#include "harness/base/missing.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/python/object_text.h"
#include "harness/verdict/verdict.h"

namespace attest {

namespace nb = nanobind;

namespace {

/// Python's own machinery of imports, and attest's: nobody's mistake stands there.
bool imports(const std::string& file) {
  return file.starts_with("<frozen importlib") || file.ends_with("/importlib/__init__.py") ||
         file.ends_with("/attest/_load.py");
}

/// "mine.py, line 12" of the innermost frame of somebody's own; empty where there is none.
std::string place_of(const nb::python_error& error) {
  // A file that can't be read as Python has no frame of its own: the innermost is one of what imports it.
  if (error.matches(PyExc_SyntaxError) && !nb::getattr(error.value(), "filename", nb::none()).is_none()) {
    const nb::object file = nb::getattr(error.value(), "filename", nb::none()),
                     line = nb::getattr(error.value(), "lineno", nb::none());
    return std::filesystem::path(object_text(file)).filename().string() +
           (line.is_none() ? "" : ", line " + object_text(line));
  }
  nb::object frame = nb::borrow(error.traceback());
  if (!frame.is_valid() || frame.is_none()) return "";
  std::string place;
  for (; !frame.is_none(); frame = frame.attr("tb_next")) {
    const std::string file = path_text(frame.attr("tb_frame").attr("f_code").attr("co_filename"));
    if (imports(file)) continue;
    place = std::filesystem::path(file).filename().string() + ", line " + object_text(frame.attr("tb_lineno"));
  }
  return place;
}

}  // namespace

std::string exception_text(const nb::python_error& error) {
  try {
    const nb::object told =
        nb::module_::import_("traceback").attr("TracebackException")(error.type(), error.value(), nb::none());
    nb::setattr(told, "__notes__", nb::none());  // they would come last
    const nb::list lines(told.attr("format_exception_only")());
    std::string last = object_text(lines[nb::len(lines) - 1]);
    while (last.ends_with('\n')) last.pop_back();
    const std::string place = place_of(error);
    return printable_line(last) + (place.empty() ? "" : " (" + printable_line(place) + ")");
  } catch (const std::exception&) {  // an exception whose own text raises one
    return "an exception that can't be shown";
  }
}

bool tells_what_is_missing(const nb::python_error& error) {
  if (error.matches(PyExc_ImportError)) return true;
  std::string text;
  try {
    text = object_text(nb::borrow(error.value()));
  } catch (const std::exception&) {
    return false;
  }
  return names_what_is_missing(text);
}

void rethrow_for_verdict(const nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) {
    interrupted = true;
    throw CaseFault(Status::crashed, {Cause::ended_by_user}, "interrupted");
  }
  if (error.matches(PyExc_MemoryError)) throw std::bad_alloc();
  if (tells_what_is_missing(error)) {
    throw UnusableBackend("what the kernel needs is not on this machine: " + exception_text(error) +
                          "; install it, or leave the kernel out");
  }
  throw BackendError(exception_text(error));
}

}  // namespace attest

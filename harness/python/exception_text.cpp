#include "harness/python/exception_text.h"

#include <filesystem>

#include "backends/backend.h"
#include "harness/base/interrupted.h"
#include "harness/base/text.h"
#include "harness/python/object_text.h"
#include "harness/verdict/verdict.h"

namespace attest {

namespace nb = nanobind;

namespace {

/// "mine.py, line 12" of the innermost frame; empty where there is none.
std::string place_of(const nb::python_error& error) {
  nb::object frame = nb::borrow(error.traceback());
  if (!frame.is_valid() || frame.is_none()) return "";
  while (!frame.attr("tb_next").is_none()) frame = frame.attr("tb_next");
  const auto file = nb::cast<std::string>(frame.attr("tb_frame").attr("f_code").attr("co_filename"));
  return std::filesystem::path(file).filename().string() + ", line " + object_text(frame.attr("tb_lineno"));
}

}  // namespace

std::string exception_text(const nb::python_error& error) {
  try {
    const nb::object lines =
        nb::module_::import_("traceback").attr("format_exception_only")(error.type(), error.value());
    std::string last = object_text(lines[nb::int_(-1)]);
    while (last.ends_with('\n')) last.pop_back();
    const std::string place = place_of(error);
    return printable_line(last) + (place.empty() ? "" : " (" + printable_line(place) + ")");
  } catch (const std::exception&) {  // an exception whose own text raises one
    return "an exception that can't be shown";
  }
}

void rethrow_for_verdict(const nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) {
    interrupted = true;
    throw CaseFault(Status::crashed, {Cause::ended_by_user}, "interrupted");
  }
  if (error.matches(PyExc_MemoryError)) throw std::bad_alloc();
  throw BackendError(exception_text(error));
}

}  // namespace attest

// An exception of Python as one line for a verdict.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace attest {

/// The exception's last line with where it was raised: "ValueError: no such mask (mine.py, line 12)". Needs the GIL.
std::string exception_text(const nanobind::python_error& error);

/// Whether the exception says that the machine lacks what the kernel needs, and not that the kernel is wrong: a module
/// that can't be imported, a driver, a device. With the interpreter's lock.
bool tells_what_is_missing(const nanobind::python_error& error);

/// UnusableBackend for what the machine lacks, else a BackendError with that line; or, where the user pressed Ctrl-C,
/// the flag of interrupts and a CaseFault that no report will tell.
[[noreturn]] void rethrow_for_verdict(const nanobind::python_error& error);

}  // namespace attest

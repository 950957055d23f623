// While work goes on without the interpreter's lock: who listens in Python, and Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <string>

#include "harness/report/report.h"

namespace attest {

/// A function of Python that is told what happens, as a word and JSON. What it raises ends the work.
class Listener {
 public:
  /// With the interpreter's lock. Forgets an earlier interrupt.
  explicit Listener(nanobind::object function);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// From any thread, without the lock. Takes the chance to see Ctrl-C.
  void tell(const char* kind, const std::string& json);
  /// When all is done: raises in Python what the function raised. With the lock.
  void require_no_error() const;

 private:
  nanobind::object function_;
  std::exception_ptr error_;
};

/// A verdict as Python reads it: its line of JSON with its cause.
std::string verdict_text(const Verdict& verdict);

/// Tells each verdict of a run, and the smallest failures.
std::unique_ptr<Report> listening_report(Listener& listener);

}  // namespace attest

#include "harness/python/listening.h"

#include <utility>

#include "harness/base/interrupted.h"
#include "harness/report/run_tally.h"
#include "harness/report/verdict_json.h"

namespace attest {

namespace nb = nanobind;

namespace {

/// What is no UTF-8 stands as U+FFFD.
std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

class ListeningReport : public Report {
 public:
  explicit ListeningReport(Listener& listener) : listener_(listener) {}

  void begin(const RunInfo& info) override {
    OrderedJson json = {{"cases", info.cases}, {"backends", OrderedJson::array()}};
    for (const Identity& b : info.backends) {
      json["backends"].push_back({{"name", b.name}, {"library", b.library}, {"device", b.device}});
      if (!b.parameters.empty()) json["backends"].back()["parameters"] = b.parameters;
    }
    listener_.tell("begin", text_of(json));
  }
  void verdict(const Verdict& verdict) override {
    tally_.add(verdict);
    listener_.tell("verdict", verdict_text(verdict));
  }
  void shrunk(const Verdict& failure, const Verdict& small) override {
    const OrderedJson json = {{"case", failure.case_line},
                              {"backend", failure.backend},
                              {"smallest", small.case_line},
                              {"reason", small.reason},
                              {"repro", small.repro}};
    listener_.tell("shrunk", text_of(json));
  }
  void right_if(const RightIfTold& told) override {
    const OrderedJson json = {{"backend", told.backend}, {"statement", told.statement}, {"code", told.code}};
    listener_.tell("right_if", text_of(json));
  }
  void ending(const Ending& ending) override { ending_ = ending; }
  void end(const Counts& /*counts*/, double /*seconds*/, const std::vector<std::string>& problems) override {
    listener_.tell("answer", text_of(tally_.answer(ending_, problems.size()).text()));
  }

 private:
  Listener& listener_;
  RunTally tally_;
  Ending ending_;
};

}  // namespace

std::string verdict_text(const Verdict& verdict) {
  OrderedJson json = verdict_to_json(verdict);
  json["cause"] = verdict.cause.text();
  return text_of(json);
}

Listener::Listener(nb::object function) : function_(std::move(function)) { interrupted = false; }

Listener::~Listener() {
  const nb::gil_scoped_acquire lock;
  function_.reset();
  error_ = nullptr;
}

void Listener::tell(const char* kind, const std::string& json) {
  const nb::gil_scoped_acquire lock;
  try {
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    if (!function_.is_none()) function_(kind, nb::str(json.c_str(), json.size()));
  } catch (const nb::python_error& error) {
    interrupted = true;
    if (!error.matches(PyExc_KeyboardInterrupt) && !error_) error_ = std::current_exception();
  }
}

void Listener::require_no_error() const {
  if (error_) std::rethrow_exception(error_);
}

std::unique_ptr<Report> listening_report(Listener& listener) { return std::make_unique<ListeningReport>(listener); }

}  // namespace attest

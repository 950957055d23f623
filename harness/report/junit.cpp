// JUnit: a suite for each suite and backend, a test for each case.
#include <fmt/format.h>

#include <map>
#include <pugixml.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/report/report.h"

namespace attest {
namespace {

class JunitReport : public Report {
 public:
  explicit JunitReport(const std::filesystem::path& path) : file_(path) {
    suites_ = document_.append_child("testsuites");
  }

  void verdict(const Verdict& v) override {
    const std::string key = printable((v.suite.empty() ? "cases" : v.suite) + "." + v.backend);
    auto [found, fresh] = groups_.try_emplace(key);
    Group& group = found->second;
    if (fresh) {
      group.node = suites_.append_child("testsuite");
      group.node.append_attribute("name") = key.c_str();
    }
    ++group.tests;
    const double seconds = v.seconds.prepare + v.seconds.upload + v.seconds.run + v.seconds.download;
    group.seconds += seconds;
    pugi::xml_node test = group.node.append_child("testcase");
    test.append_attribute("classname") = key.c_str();
    test.append_attribute("name") = printable(v.case_line).c_str();
    test.append_attribute("time") = fmt::format("{:.6f}", seconds).c_str();
    if (v.status == Status::pass) return;
    if (is_right(v)) {  // a test that passed, and why it did
      test.append_child("system-out").text().set(printable(v.reason).c_str());
      return;
    }
    const bool failed = is_failure(v);
    ++(failed ? group.failures : group.skipped);
    pugi::xml_node node = test.append_child(failed ? "failure" : "skipped");
    node.append_attribute("message") = printable(std::string(name_of(v.status)) + ": " + v.reason).c_str();
    if (!failed) return;
    node.text().set(printable(v.repro).c_str());
    failures_.emplace_back(v.backend, node);
  }

  void right_if(const RightIfTold& told) override {
    for (auto& [backend, node] : failures_) {
      if (backend == told.backend)
        node.text().set(printable(std::string(node.text().get()) + "\n" + backend + " " + told.sentence()).c_str());
    }
  }

  void ending(const Ending& ending) override {
    if (!ending.interrupted) return;
    pugi::xml_node test = complain("interrupted");
    test.append_child("failure").append_attribute("message") = "the run was interrupted: verdicts are missing";
  }

  void end(const Counts&, double seconds, const std::vector<std::string>& problems) override {
    for (const std::string& problem : problems) {
      complain("expected refusals").append_child("failure").append_attribute("message") = printable(problem).c_str();
    }
    Group all;  // complaints about the run as a whole, too: what reads the totals alone must not take it for green
    for (auto& [key, group] : groups_) {
      all.tests += group.tests;
      all.failures += group.failures;
      all.skipped += group.skipped;
      group.node.append_attribute("tests") = group.tests;
      group.node.append_attribute("failures") = group.failures;
      group.node.append_attribute("skipped") = group.skipped;
      group.node.append_attribute("time") = fmt::format("{:.6f}", group.seconds).c_str();
    }
    suites_.append_attribute("tests") = all.tests;
    suites_.append_attribute("failures") = all.failures;
    suites_.append_attribute("skipped") = all.skipped;
    suites_.append_attribute("time") = fmt::format("{:.6f}", seconds).c_str();
    document_.save(file_.stream(), "  ");
    file_.finish();
  }

 private:
  /// A test that failed in the suite of complaints about the run as a whole.
  pugi::xml_node complain(const char* name) {
    Group& group = groups_["run"];
    if (!group.node) {
      group.node = suites_.append_child("testsuite");
      group.node.append_attribute("name") = "run";
    }
    ++group.tests;
    ++group.failures;
    pugi::xml_node test = group.node.append_child("testcase");
    test.append_attribute("classname") = "run";
    test.append_attribute("name") = name;
    return test;
  }

  struct Group {
    pugi::xml_node node;
    unsigned tests = 0, failures = 0, skipped = 0;
    double seconds = 0;
  };

  OutputFile file_;
  pugi::xml_document document_;
  pugi::xml_node suites_;
  std::map<std::string, Group> groups_;
  std::vector<std::pair<std::string, pugi::xml_node>> failures_;  ///< by backend
};

}  // namespace

std::unique_ptr<Report> junit_report(const std::filesystem::path& path) { return std::make_unique<JunitReport>(path); }

}  // namespace attest

// JUnit: a suite for each suite and backend, a test for each case.
#include <fmt/format.h>

#include <map>
#include <pugixml.hpp>

#include "harness/base/output_file.h"
#include "harness/report/report.h"

namespace attest {
namespace {

class JunitReport : public Report {
 public:
  explicit JunitReport(const std::filesystem::path& path) : file_(path) {
    suites_ = document_.append_child("testsuites");
  }

  void verdict(const Verdict& v) override {
    const std::string key = (v.suite.empty() ? "cases" : v.suite) + "." + v.backend;
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
    test.append_attribute("name") = v.case_line.c_str();
    test.append_attribute("time") = fmt::format("{:.6f}", seconds).c_str();
    if (v.status == Status::pass) return;
    const bool failed = is_failure(v);
    ++(failed ? group.failures : group.skipped);
    pugi::xml_node node = test.append_child(failed ? "failure" : "skipped");
    node.append_attribute("message") = printable(std::string(name_of(v.status)) + ": " + v.reason).c_str();
    if (failed) node.text().set(printable(v.repro).c_str());
  }

  void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) override {
    if (!problems.empty()) {
      Group& group = groups_["run"];
      group.node = suites_.append_child("testsuite");
      group.node.append_attribute("name") = "run";
      for (const std::string& problem : problems) {
        ++group.tests;
        ++group.failures;
        pugi::xml_node test = group.node.append_child("testcase");
        test.append_attribute("classname") = "run";
        test.append_attribute("name") = "expected refusals";
        test.append_child("failure").append_attribute("message") = printable(problem).c_str();
      }
    }
    for (auto& [key, group] : groups_) {
      group.node.append_attribute("tests") = group.tests;
      group.node.append_attribute("failures") = group.failures;
      group.node.append_attribute("skipped") = group.skipped;
      group.node.append_attribute("time") = fmt::format("{:.6f}", group.seconds).c_str();
    }
    suites_.append_attribute("tests") = static_cast<unsigned>(counts.pass + counts.failures() + counts.skipped());
    suites_.append_attribute("failures") = static_cast<unsigned>(counts.failures());
    suites_.append_attribute("skipped") = static_cast<unsigned>(counts.skipped());
    suites_.append_attribute("time") = fmt::format("{:.6f}", seconds).c_str();
    document_.save(file_.stream(), "  ");
    file_.finish();
  }

 private:
  struct Group {
    pugi::xml_node node;
    unsigned tests = 0, failures = 0, skipped = 0;
    double seconds = 0;
  };

  /// XML forbids control characters.
  static std::string printable(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = '?';
    }
    return text;
  }

  OutputFile file_;
  pugi::xml_document document_;
  pugi::xml_node suites_;
  std::map<std::string, Group> groups_;
};

}  // namespace

std::unique_ptr<Report> junit_report(const std::filesystem::path& path) { return std::make_unique<JunitReport>(path); }

}  // namespace attest

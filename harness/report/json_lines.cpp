// JSON Lines and JUnit.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/report/report.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN or infinity; they are written as strings.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json machine_json() {
  const Machine m = this_machine();
  return {{"cpu", m.cpu}, {"cores", m.cores}, {"memory_gib", m.memory_gib}, {"system", m.system}, {"build", m.build}};
}

class JsonLinesReport : public Report {
 public:
  explicit JsonLinesReport(const std::filesystem::path& path) : file_(path) {}

  void begin(const RunInfo& info) override {
    Json header = {{"kind", "run"},
                   {"schema", 1},
                   {"attest", ATTEST_VERSION},
                   {"commit", build_commit()},
                   {"machine", machine_json()},
                   {"backends", Json::array()}};
    for (const Identity& b : info.backends) {
      header["backends"].push_back({{"name", b.name}, {"library", b.library}, {"device", b.device}});
    }
    header["unavailable"] = Json::array();
    for (const Unavailable& u : info.unavailable) {
      header["unavailable"].push_back({{"name", u.name}, {"reason", u.reason}});
    }
    header["command"] = info.command;
    line(header);
  }

  void shrunk(const Verdict& failure, const Verdict& small) override {
    line({{"kind", "shrunk"},
          {"case", failure.case_line},
          {"backend", failure.backend},
          {"smallest", small.case_line},
          {"reason", small.reason},
          {"repro", small.repro}});
  }

  void verdict(const Verdict& v) override {
    Json json = {
        {"kind", "verdict"},           {"suite", v.suite},  {"case", v.case_line},         {"backend", v.backend},
        {"status", name_of(v.status)}, {"reason", nullptr}, {"error_over_bound", nullptr}, {"worst", nullptr}};
    if (!v.reason.empty()) json["reason"] = v.reason;
    if (v.error_over_bound) json["error_over_bound"] = number(*v.error_over_bound);
    if (v.error_over_sigma) json["error_over_sigma"] = number(*v.error_over_sigma);
    if (!v.waiver.empty()) json["waiver"] = v.waiver;
    if (v.worst) {
      json["worst"] = {{"output", v.worst->output},
                       {"index", v.worst->index},
                       {"got", number(v.worst->got)},
                       {"expected", number(v.worst->expected)},
                       {"bound", number(v.worst->bound)}};
    }
    json["rows_checked"] = v.rows_checked;
    json["rows"] = v.rows;
    json["seconds"] = {{"prepare", v.seconds.prepare},
                       {"upload", v.seconds.upload},
                       {"run", v.seconds.run},
                       {"download", v.seconds.download}};
    if (v.bitwise) {
      const auto fact = [](const std::optional<bool>& same) { return same ? Json(*same) : Json(nullptr); };
      json["bitwise"] = {
          {"runs", fact(v.bitwise->runs)}, {"threads", fact(v.bitwise->threads)}, {"batch", fact(v.bitwise->batch)}};
    }
    json["repro"] = v.repro;
    line(json);
  }

  void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) override {
    Json summary = {{"kind", "summary"},
                    {"pass", counts.pass},
                    {"fail", counts.fail},
                    {"refused", counts.refused},
                    {"mistrusted", counts.mistrusted},
                    {"suspect", counts.suspect},
                    {"waived", counts.waived},
                    {"crashed", counts.crashed},
                    {"timeout", counts.timeout},
                    {"seconds", seconds}};
    if (!problems.empty()) summary["problems"] = problems;
    line(summary);
    file_.finish();
  }

 private:
  void line(const Json& json) {
    // Text of a backend may hold bytes that are no UTF-8; they are replaced, never thrown over.
    file_.stream() << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }

  OutputFile file_;
};

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

void Counts::add(const Verdict& v) {
  switch (v.status) {
    case Status::pass: ++pass; break;
    case Status::fail: ++fail; break;
    case Status::crashed: ++crashed; break;
    case Status::timeout: ++timeout; break;
    case Status::refused: ++refused; break;
    case Status::mistrusted: ++mistrusted; break;
    case Status::suspect:
      ++suspect;
      waived += !is_failure(v);
      break;
  }
}

std::unique_ptr<Report> json_lines_report(const std::filesystem::path& path) {
  return std::make_unique<JsonLinesReport>(path);
}

std::unique_ptr<Report> junit_report(const std::filesystem::path& path) { return std::make_unique<JunitReport>(path); }

}  // namespace attest

// JSON Lines: a header, a line for each verdict, a summary.
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/report/report.h"
#include "harness/report/run_header.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

class JsonLinesReport : public Report {
 public:
  explicit JsonLinesReport(const std::filesystem::path& path) {
    if (path != "-") file_.emplace(path);
  }

  void begin(const RunInfo& info) override {
    header_ = run_header_to_json(info);
    line(header_);
  }

  /// On disk at once, in the order in which they come.
  void arrival(const Verdict& v) override {
    if (!file_ || !file_->can_begin_anew()) return;
    line(verdict_to_json(v));
    file_->keep_unfinished();
    out_of_order_ = true;
  }

  void shrunk(const Verdict& failure, const Verdict& small) override {
    OrderedJson json = {{kKindKey, kShrunkKind},       {"case", failure.case_line}, {"backend", failure.backend},
                        {"smallest", small.case_line}, {"reason", small.reason},    {"repro", small.repro},
                        {"cause", small.cause.text()}};
    if (!small.not_needed.empty()) json["not_needed"] = small.not_needed;
    line(json);
  }

  void right_if(const RightIfTold& told) override { right_if_.push_back(told); }

  void verdict(const Verdict& v) override {
    if (std::exchange(out_of_order_, false)) {
      file_->begin_anew();
      line(header_);
    }
    line(verdict_to_json(v));
    if (file_) file_->keep_unfinished();
  }

  void ending(const Ending& ending) override {
    for (const Verdict& verdict : ending.left) {
      OrderedJson kept = verdict_to_json(verdict);
      kept[kKindKey] = kKeptKind;
      line(kept);
    }
    ending_ = ending;
  }

  void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) override {
    OrderedJson summary = {{kKindKey, kSummaryKind},
                           {"pass", counts.pass},
                           {"fail", counts.fail},
                           {"refused", counts.refused},
                           {"inconclusive", counts.inconclusive},
                           {"suspect", counts.suspect},
                           {"waived", counts.waived},
                           {"crashed", counts.crashed},
                           {"timeout", counts.timeout},
                           {"convention", counts.convention},
                           {"weak", counts.weak},
                           {"flaky", counts.flaky},
                           {"seconds", seconds}};
    if (ending_.interrupted) summary["interrupted"] = true;
    if (ending_.taken_over > 0) summary["taken_over"] = ending_.taken_over;
    if (!ending_.left.empty()) summary["kept"] = ending_.left.size();
    if (!problems.empty()) summary["problems"] = problems;
    for (const RightIfTold& one : right_if_)
      summary["right_if"][one.backend] = {{"statement", one.statement}, {"code", one.code}};
    line(summary);
    if (file_) file_->finish();
  }

 private:
  void line(const OrderedJson& json) {
    // Text of a backend may hold bytes that are no UTF-8; they are replaced, never thrown over.
    const std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
    if (file_) {
      file_->write(text);
    } else {  // a line at once, for who reads along; what can't be written shows in ferror() at the end
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  }

  std::optional<OutputFile> file_;  ///< without one: standard output
  OrderedJson header_;
  bool out_of_order_ = false;  ///< what is in the file
  Ending ending_;
  std::vector<RightIfTold> right_if_;
};

}  // namespace

std::unique_ptr<Report> json_lines_report(const std::filesystem::path& path) {
  return std::make_unique<JsonLinesReport>(path);
}

}  // namespace attest

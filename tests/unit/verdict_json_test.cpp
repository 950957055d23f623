// What a run writes down: each verdict can be read again as it was.
#include "harness/report/verdict_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

// The names of all members stand here once, so that a new one doesn't compile before it is compared.

bool same(const WorstElement& a, const WorstElement& b) {
  const auto& [output, index, got, expected, bound] = a;
  return output == b.output && index == b.index && same(got, b.got) && same(expected, b.expected) &&
         same(bound, b.bound);
}

bool same(const StepSeconds& a, const StepSeconds& b) {
  const auto& [prepare, upload, run, download] = a;
  return same(prepare, b.prepare) && same(upload, b.upload) && same(run, b.run) && same(download, b.download);
}

bool same(const Repeats& a, const Repeats& b) {
  const auto& [wrong, runs] = a;
  return wrong == b.wrong && runs == b.runs;
}

bool same(const BitwiseFacts& a, const BitwiseFacts& b) {
  const auto& [runs, threads, batch] = a;
  return runs == b.runs && threads == b.threads && batch == b.batch;
}

bool same(const ErrorGrid& a, const ErrorGrid& b) {
  const auto& [height, width, cells] = a;
  if (height != b.height || width != b.width || cells.size() != b.cells.size()) return false;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (cells[row].size() != b.cells[row].size()) return false;
    for (std::size_t column = 0; column < cells[row].size(); ++column) {
      if (!same(cells[row][column], b.cells[row][column])) return false;
    }
  }
  return true;
}

bool same(const ErrorMap& a, const ErrorMap& b) {
  const auto& [output, rows, batch, head, elements] = a;
  return output == b.output && same(rows, b.rows) && batch == b.batch && head == b.head && same(elements, b.elements);
}

bool same(const std::vector<SignedBias>& a, const std::vector<SignedBias>& b) {
  return std::ranges::equal(a, b, [](const SignedBias& one, const SignedBias& other) {
    const auto& [output, elements, up, outward] = one;
    return output == other.output && elements == other.elements && up == other.up && outward == other.outward;
  });
}

bool same(const std::vector<Accuracy>& a, const std::vector<Accuracy>& b) {
  return std::ranges::equal(a, b, [](const Accuracy& one, const Accuracy& other) {
    const auto& [output, compared, unproven, elements, ulps, relative, normwise] = one;
    return output == other.output && compared == other.compared && unproven == other.unproven &&
           elements == other.elements && ulps == other.ulps && relative == other.relative && normwise == other.normwise;
  });
}

/// The first member of `a` that differs in `b`; "" when they are the same. What the case itself tells isn't written.
std::string difference(const Verdict& a, const Verdict& b) {
  const auto& [suite, case_line, backend, call_line, content, number, dtype, status, reason, cause, mistakes, after,
               not_needed, steps, repeats, waiver, error_over_bound, error_over_sigma, bias, accuracy, worst, error_map,
               rows_checked, rows, seconds, bitwise, repro] = a;
  (void)call_line;
  (void)dtype;
  (void)not_needed;  // stands beside the smallest case
  const std::pair<const char*, bool> members[] = {
      {"suite", suite == b.suite},
      {"case_line", case_line == b.case_line},
      {"backend", backend == b.backend},
      {"content", content == b.content},
      {"number", number == b.number},
      {"status", status == b.status},
      {"reason", reason == b.reason},
      {"cause", cause == b.cause},
      {"mistakes", mistakes == b.mistakes},
      {"after", after == b.after},
      {"steps", steps == b.steps},
      {"repeats", repeats.has_value() == b.repeats.has_value() && (!repeats || same(*repeats, *b.repeats))},
      {"waiver", waiver == b.waiver},
      {"error_over_bound", same(error_over_bound, b.error_over_bound)},
      {"error_over_sigma", same(error_over_sigma, b.error_over_sigma)},
      {"bias", same(bias, b.bias)},
      {"accuracy", same(accuracy, b.accuracy)},
      {"worst", worst.has_value() == b.worst.has_value() && (!worst || same(*worst, *b.worst))},
      {"error_map", error_map.has_value() == b.error_map.has_value() && (!error_map || same(*error_map, *b.error_map))},
      {"rows_checked", rows_checked == b.rows_checked},
      {"rows", rows == b.rows},
      {"seconds", same(seconds, b.seconds)},
      {"bitwise", bitwise.has_value() == b.bitwise.has_value() && (!bitwise || same(*bitwise, *b.bitwise))},
      {"repro", repro == b.repro}};
  for (const auto& [name, equal] : members) {
    if (!equal) return name;
  }
  return "";
}

/// A verdict in which each optional member is there or not, by a bit of `set`; its numbers are `number` and near it.
constexpr int kOptionalMembers = 14;
Verdict sample(Status status, unsigned set, double number) {
  const auto has = [set](unsigned bit) { return (set >> bit & 1) != 0; };
  Verdict v;
  v.suite = "smoke";
  v.case_line = "heads=2 seq=3x5 dim=4";
  v.backend = "a backend";
  v.status = status;
  if (has(0)) v.reason = "line one\n\"quoted\"\ttab \xc3\xa9";
  if (has(1)) v.waiver = "known to be right";
  if (has(2)) v.error_over_bound = number;
  if (has(3)) v.error_over_sigma = number;
  if (has(4)) v.worst = WorstElement{"lse", {1, 2, 3, 4}, number, 0.1, -number};
  if (has(5)) {
    const auto fact = [&](unsigned bit) { return has(bit) ? std::optional(bit != 7) : std::nullopt; };
    v.bitwise = BitwiseFacts{fact(6), fact(7), fact(8)};
  }
  if (has(9)) v.content = "0123456789abcdef0123456789abcdef";
  if (has(9)) v.number = 3468;
  if (has(10)) v.cause = {Cause::outside_bound, "o"};
  if (has(9)) v.after = "seq=3 dim=4";
  if (has(10)) v.steps = "1:prepare 1:upload";
  if (has(12)) v.repeats = Repeats{2, 5};
  if (has(11)) {
    v.error_map = ErrorMap{"o", ErrorGrid(2, 3), 0, 1, ErrorGrid(3, 40)};
    v.error_map->rows.add(1, 2, 0.5);
    v.error_map->elements.add(2, 39, kInfinity);
  }
  if (has(13)) v.bias = {{"o", 12, -0.25, 3.5}, {"lse", 3, 0, -1.75}};
  if (has(13)) v.accuracy = {{"o", 12, 3, 11, {0.5, 1, 2.5}, {1e-7, 2e-7, 1}, 3e-8}};
  if (has(12)) v.mistakes = {"scale_left_out", "mean_of_values"};
  v.rows_checked = 7;
  v.rows = std::int64_t{1} << 53;
  v.seconds = {0.1, 1e-9, 2.0 / 3, 4};
  v.repro = "attest check --backend 'a backend' 'heads=2 seq=3x5 dim=4'";
  return v;
}

OrderedJson through_text(const Verdict& verdict) { return OrderedJson::parse(verdict_to_json(verdict).dump()); }

TEST(VerdictJson, ComesBackAsItWas) {
  for (const Status status : values_of<Status>()) {
    for (unsigned set = 0; set < 1u << kOptionalMembers; ++set) {
      // Members don't depend on each other: any two that are there, and any two that are not.
      if (const int there = std::popcount(set); there > 2 && there < kOptionalMembers - 2) continue;
      for (double number : {0.1, 3.0, -0.0, 5e-324, 1.7976931348623157e308, kNaN, kInfinity, -kInfinity}) {
        const Verdict verdict = sample(status, set, number);
        const auto got = verdict_from_json(through_text(verdict));
        ASSERT_TRUE(got) << verdict_to_json(verdict);
        ASSERT_EQ(difference(verdict, *got), "") << verdict_to_json(verdict);
      }
    }
  }
}

TEST(VerdictJson, ReadsTheOldNameOfInconclusive) {
  OrderedJson json = verdict_to_json(sample(Status::inconclusive, 0, 0.5));
  EXPECT_EQ(json.at("status"), "inconclusive");
  json["status"] = "mistrusted";
  const auto got = verdict_from_json(json);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, Status::inconclusive);
}

TEST(VerdictJson, IsTheLineThatOthersReadAlready) {
  Verdict v = sample(Status::suspect, 0x1bf, kInfinity);
  v.reason = "far off";
  EXPECT_EQ(
      verdict_to_json(v).dump(),
      R"({"kind":"verdict","suite":"smoke","case":"heads=2 seq=3x5 dim=4","backend":"a backend","status":"suspect",)"
      R"("reason":"far off","error_over_bound":"inf","worst":{"output":"lse","index":[1,2,3,4],"got":"inf",)"
      R"("expected":0.1,"bound":"-inf"},"error_over_sigma":"inf","waiver":"known to be right","rows_checked":7,)"
      R"("rows":9007199254740992,"seconds":{"prepare":0.1,"upload":1e-09,"run":0.6666666666666666,"download":4.0},)"
      R"("bitwise":{"runs":null,"threads":false,"batch":true},)"
      R"("repro":"attest check --backend 'a backend' 'heads=2 seq=3x5 dim=4'"})");
  EXPECT_EQ(verdict_to_json(sample(Status::pass, 0, 0)).dump(),
            R"({"kind":"verdict","suite":"smoke","case":"heads=2 seq=3x5 dim=4","backend":"a backend","status":"pass",)"
            R"("reason":null,"error_over_bound":null,"worst":null,"rows_checked":7,"rows":9007199254740992,)"
            R"("seconds":{"prepare":0.1,"upload":1e-09,"run":0.6666666666666666,"download":4.0},)"
            R"("repro":"attest check --backend 'a backend' 'heads=2 seq=3x5 dim=4'"})");
}

TEST(VerdictJson, IsNoVerdictWithAFieldMissingOrOfAnotherType) {
  const OrderedJson whole = through_text(sample(Status::fail, (1u << kOptionalMembers) - 1, 2.5));
  ASSERT_TRUE(verdict_from_json(whole));
  for (const auto& [name, value] : whole.items()) {
    OrderedJson other = whole;
    other[name] = OrderedJson::array({1});
    EXPECT_FALSE(verdict_from_json(other)) << name;
    other.erase(name);
    const bool optional = name == "content" || name == "error_over_sigma" || name == "waiver" || name == "bitwise" ||
                          name == "cause" || name == "error_map" || name == "number" || name == "mistakes" ||
                          name == "after" || name == "steps" || name == "bias" || name == "accuracy" ||
                          name == "repeats";
    EXPECT_EQ(verdict_from_json(other).has_value(), optional) << name;
  }
  OrderedJson other = whole;
  other["status"] = "splendid";
  EXPECT_FALSE(verdict_from_json(other));
  other = whole;
  other["worst"].erase("bound");
  EXPECT_FALSE(verdict_from_json(other));
  other = whole;
  other["worst"]["index"] = {1, 2, 3};
  EXPECT_FALSE(verdict_from_json(other));
  other = whole;
  other["error_map"]["rows"]["cells"] = {1, 2, 3};
  EXPECT_FALSE(verdict_from_json(other));
}

TEST(VerdictJson, ANewerSchemaIsRefusedInOneLine) {
  require_known_schema({{"kind", "run"}}, "a file");
  require_known_schema({{"schema", 1}}, "a file");
  require_known_schema({{"schema", kVerdictSchema}}, "a file");
  EXPECT_EQ(message_of<UserError>([] {
              require_known_schema({{"schema", 99}}, "a file");
            }),
            "a file: schema 99 of a newer attest; this one reads up to 3");
  EXPECT_EQ(message_of<UserError>([] {
              require_known_schema({{"schema", "two"}}, "a file");
            }),
            "a file: schema \"two\"; a number from 1 to 3 is wanted");
}

}  // namespace
}  // namespace attest

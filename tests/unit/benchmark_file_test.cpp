// Samples of a benchmark file, in milliseconds whatever its unit; older and newer files, disturbed samples.
#include "harness/speed/files/benchmark_file.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

Samples samples_of(const std::string& benchmarks) {
  std::istringstream file("{\"benchmarks\":[" + benchmarks + "]}");
  return read_samples(file, "file");
}

std::string complaint_about(const std::string& text) {
  std::istringstream file(text);
  return complaint([&] { read_samples(file, "file"); });
}

TEST(BenchmarkFile, TimesAreMilliseconds) {
  const Samples samples =
      samples_of(R"({"name":"eigen/run","label":"seq=4 dim=4","real_time":2000000,"time_unit":"ns"},)"
                 R"({"name":"eigen/run","label":"seq=4 dim=4","real_time":3000,"time_unit":"us"},)"
                 R"({"name":"eigen/run","label":"seq=4 dim=4","real_time":4,"time_unit":"ms"},)"
                 R"({"name":"eigen/run","label":"seq=4 dim=4","real_time":0.5,"time_unit":"s"},)"
                 R"({"name":"eigen/run_median","label":"seq=4 dim=4","real_time":9,"run_type":"aggregate"})");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples.begin()->first, "eigen     seq=4 dim=4");
  EXPECT_EQ(samples.begin()->second, (std::vector<double>{2, 3, 4, 500}));  // the median is no sample
}

TEST(BenchmarkFile, OfSomethingElseIsRefusedInOneSentence) {
  EXPECT_EQ(complaint_about("{}"), "file: no benchmark file; `attest bench --json FILE` writes one");
  EXPECT_EQ(complaint_about("nonsense"), "file: no benchmark file; `attest bench --json FILE` writes one");
  EXPECT_EQ(complaint_about(R"({"benchmarks":[]})"), "file: no samples in it");
  EXPECT_NE(complaint_about(R"({"benchmarks":[{"name":"eigen","real_time":0}]})"), "");
  EXPECT_TRUE(complaint_about(R"({"benchmarks":[{"name":"eigen"}]})").starts_with("file: "));
  EXPECT_THROW(read_samples(std::filesystem::path("missing.json")), UserError);
}

TEST(BenchmarkFile, ErrorsAreSentences) {
  const auto complains = [](const std::string& run, const std::string& sentence) {
    std::istringstream file(R"({"benchmarks":[{"name":"eigen/x","real_time":1.5,"label":"x"},)" + run + "]}");
    EXPECT_EQ(message_of<UserError>([&] { read_samples(file, "b.json"); }),
              "b.json: number 2 of \"benchmarks\" " + sentence);
  };
  complains("7", "is no object");
  complains(R"({"real_time":1})", "has no \"name\"");
  complains(R"({"name":7,"real_time":1})", "has a \"name\" that is no text");
  complains(R"({"name":"a/b"})", "has no \"real_time\"");
  complains(R"({"name":"a/b","real_time":"fast"})", "has a \"real_time\" that is no number");
  complains(R"({"name":"a/b","real_time":0})", "has a time that is not above 0");
  complains(R"({"name":"a/b","real_time":1,"time_unit":7})", "has a \"time_unit\" that is no text");
  complains(R"({"name":"a/b","real_time":1,"time_unit":"h"})", "has the time unit \"h\"; ns, us, ms or s");
  complains(R"({"name":"a/b","real_time":1,"label":[]})", "has a \"label\" that is no text");
}

TEST(BenchmarkFile, NamesHoldNoControlCharacters) {
  std::istringstream file(R"({"benchmarks":[{"name":"ei\u001bgen/x","real_time":1.5,"label":"\u009b2J"}]})");
  for (const auto& [name, samples] : read_samples(file, "b.json")) EXPECT_EQ(name, printable_line(name));
}

/// `context` and the samples' own members between braces.
Samples read(const std::string& context, const std::vector<std::string>& samples) {
  std::string list;
  for (const std::string& sample : samples) {
    list += (list.empty() ? "" : ",") + std::string(R"({"name":"eigen/x/manual_time","label":"x","time_unit":"ms",)") +
            sample + "}";
  }
  std::istringstream file(R"({"context":{)" + context + R"(},"benchmarks":[)" + list + "]}");
  return read_samples(file, "a file");
}

TEST(BenchmarkFile, TheFirstSchemaHasNoVersion) {
  const Samples samples = read("", {R"("real_time":2)", R"("real_time":3)"});
  EXPECT_EQ(samples.begin()->second, (std::vector<double>{2, 3}));
}

TEST(BenchmarkFile, NumbersThatAreNoLongerWrittenAreRead) {
  std::istringstream file(R"({"benchmarks":[{"name":"eigen/x","real_time":2,"time_unit":"ms","package_watts":35}]})");
  EXPECT_EQ(read_benchmark(file, "a file").all.at(0).numbers.at("package_watts"), 35);
}

TEST(BenchmarkFile, DisturbedSamplesAreLeftOutUnlessMostAre) {
  const std::string schema = R"("schema":"2")", undisturbed = R"("real_time":2,"disturbed":0)",
                    disturbed = R"("real_time":9,"disturbed":1.0)";
  EXPECT_EQ(read(schema, {undisturbed, disturbed, undisturbed}).begin()->second, (std::vector<double>{2, 2}));
  EXPECT_EQ(read(schema, {disturbed, disturbed, undisturbed}).begin()->second, (std::vector<double>{9, 9, 2}));
}

TEST(BenchmarkFile, TheCountIsOfThoseAskedForAsInTheTable) {
  const std::string u = R"("real_time":2,"disturbed":0)", d = R"("real_time":9,"disturbed":1.0)";
  const std::string four = R"("schema":"2","repetitions":"4")";
  // Disturbed ones are taken again: five samples where four were asked for.
  EXPECT_EQ(read(four, {u, d, d, u, d}).begin()->second, (std::vector<double>{2, 2}));
  EXPECT_EQ(read(four, {u, d, d, d, d}).begin()->second.size(), 5u);
}

TEST(BenchmarkFile, KeysWithTooManyDisturbedSamplesAreMarked) {
  const auto marked = [](const std::string& first, const std::string& second) {
    std::istringstream file(R"({"context":{"repetitions":"2"},"benchmarks":[)" + first + "," + second + "]}");
    return read_benchmark(file, "a file").disturbed;
  };
  const std::string u = R"({"name":"a/x","real_time":2,"disturbed":0})",
                    d = R"({"name":"a/x","real_time":2,"disturbed":1})";
  EXPECT_TRUE(marked(u, u).empty());
  EXPECT_TRUE(marked(u, d).empty()) << "half of them are left";
  EXPECT_EQ(marked(d, d).size(), 1u);
}

TEST(BenchmarkFile, ASchemaThatIsNoneIsNotCalledNewer) {
  for (const std::string wrong : {"0", "-1", "two"}) {
    EXPECT_EQ(
        message_of<UserError>([&] { read("\"schema\":\"" + wrong + "\"", {R"("real_time":2)"}); }),
        "a file: schema \"" + wrong + "\"; a number from 1 to " + std::to_string(kBenchmarkSchema) + " is wanted");
  }
}

TEST(BenchmarkFile, ANewerSchemaIsRefusedInOneLine) {
  const std::string known = std::to_string(kBenchmarkSchema), newer = std::to_string(kBenchmarkSchema + 1);
  EXPECT_EQ(complaint([&] { read("\"schema\":\"" + newer + "\"", {R"("real_time":2)"}); }),
            "a file: schema " + newer + " of a newer attest; this one reads up to " + known);
}

}  // namespace
}  // namespace attest

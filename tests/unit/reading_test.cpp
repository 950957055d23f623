// The weights of one query in sentences.
#include "harness/trace/reading.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attest {
namespace {

Row with_weights(const std::vector<double>& weights) {
  Row row;
  row.weights = weights;
  return row;
}

const std::vector<std::string> kNames = {"the", "cat", "sat"};
const std::vector<Row> kRows = {with_weights({1, 0, 0}), with_weights({0.25, 0.75, 0}),
                                with_weights({0.02, 0.03, 0.95})};
const std::vector<std::vector<double>> kCausal = {{0, 1, 1}, {0, 0, 1}, {0, 0, 0}};
const ReadableRows kReadable{kNames, kNames, kRows, kCausal};

TEST(Reading, OfOneKey) {
  EXPECT_EQ(read_row(kReadable, 0),
            "\"the\" sees one key, \"the\", which has 100.0% of its weight.\noutput[the] = 1.0000 * v[the]");
}

TEST(Reading, ComparesWithAnEvenShare) {
  EXPECT_EQ(
      read_row(kReadable, 1),
      "\"cat\" attends most to \"cat\": 75.0% of its weight, where an even share among the 2 keys it sees would be "
      "50.0%.\nIts output is mostly the value of \"cat\":\noutput[cat] = 0.2500 * v[the] + 0.7500 * v[cat]");
}

TEST(Reading, TakesTheLeastEvenRowByItself) {
  const std::string text = read_row(kReadable, std::nullopt);
  EXPECT_EQ(text.find("\"sat\""), 0u) << text;
  EXPECT_NE(text.find("95.0%"), std::string::npos) << text;
}

TEST(Reading, OfARowThatSeesNothing) {
  const std::vector<Row> rows = {with_weights({0, 0, 0})};
  const std::vector<std::vector<double>> hidden = {{1, 1, 1}};
  EXPECT_EQ(read_row({kNames, kNames, rows, hidden}, std::nullopt), "\"the\" sees no key: its output is 0.");
}

TEST(Reading, LeavesOutTheSmallestOfManyTerms) {
  std::vector<std::string> keys;
  std::vector<double> weights;
  for (int n = 0; n < 12; ++n) {
    keys.push_back("k" + std::to_string(n));
    weights.push_back((n + 1) / 78.0);
  }
  const std::vector<Row> rows = {with_weights(weights)};
  const std::vector<std::vector<double>> hidden = {std::vector<double>(12, 0)};
  const std::string text = read_row({keys, keys, rows, hidden}, 0);
  EXPECT_TRUE(text.ends_with(" + 4 smaller terms")) << text;
  EXPECT_EQ(text.find("v[k3]"), std::string::npos);
  EXPECT_NE(text.find("v[k4] + "), std::string::npos);
}

}  // namespace
}  // namespace attest

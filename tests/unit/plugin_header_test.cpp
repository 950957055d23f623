// The lists in backends/plugin/attest/attest_plugin.h are attest's own: features, roles of tensors, enumerations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "backends/plugin/attest/attest_plugin.h"
#include "harness/backends/plugin/feature_words.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensor_table.h"

namespace attest {
namespace {

std::string text_of_header() {
  std::ifstream file(std::string(ATTEST_SOURCE_DIR) + "/backends/plugin/attest/attest_plugin.h");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "ATTEST_OUT_LSE = 2" stands in the header for each of the values.
template <class Values, class Number>
void expect_values(const std::string& prefix, const Values& values, const Number& number) {
  static const std::string header = text_of_header();
  for (const auto value : values) {
    std::string name = prefix + std::string(name_of(value));
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (name.ends_with("_DIVISION")) name.erase(name.rfind('_'));  // of opencl_division, among ATTEST_DIVISION_...
    const std::string line = fmt::format("{} = {}", name, number(static_cast<int>(value)));
    const std::size_t at = header.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_FALSE(std::isdigit(static_cast<unsigned char>(header[at + line.size()]))) << line;
  }
}

TEST(PluginHeader, HasEveryEnumeration) {
  const auto same = [](int value) { return value; };
  expect_values("ATTEST_", kStorageTypes, same);
  expect_values("ATTEST_", values_of<Op>(), same);
  expect_values("ATTEST_", values_of<Align>(), same);
  expect_values("ATTEST_", values_of<Layout>(), same);
  expect_values("ATTEST_SCALE_", values_of<ScalePlacement>(), same);
  expect_values("ATTEST_OPERAND_", values_of<OperandFormat>(), same);
  expect_values("ATTEST_SUM_", values_of<SumFormat>(), same);
  expect_values("ATTEST_DIVISION_", values_of<Division>(), same);
  expect_values("ATTEST_OUT_", values_of<Output>(), [](int value) { return 1 << value; });
}

TEST(PluginHeader, HasEveryFeature) {
  const std::vector<std::string> words = all_feature_words();
  EXPECT_EQ(std::set<std::string>(std::begin(attest_known_features), std::end(attest_known_features)),
            std::set<std::string>(words.begin(), words.end()));
  EXPECT_EQ(std::size(attest_known_features), words.size()) << "a word that stands there twice";
}

/// How the header writes an axis, in the order of Axis.
constexpr std::string_view kAxes[] = {"1", "B",   "H", "H",    "G", "G", "L",     "S",    "D",
                                      "D", "D-V", "V", "past", "B", "S", "pages", "rows", "columns",
                                      "S", "n",   "n", "n",    "n", "P", "R/2",   "n*B"};

TEST(PluginHeader, DescribesEveryTensor) {
  const std::string header = text_of_header();
  for (const TensorRow& row : tensor_rows()) {
    std::vector<std::string_view> axes;
    for (const Axis axis : row.axes) axes.push_back(kAxes[static_cast<std::size_t>(axis)]);
    const std::string line = fmt::format("\n *   {:<16} {}", fmt::format("\"{}\"", row.name), fmt::join(axes, ","));
    const std::size_t at = header.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_TRUE(std::isspace(static_cast<unsigned char>(header[at + line.size()]))) << line;
  }
}

}  // namespace
}  // namespace attest

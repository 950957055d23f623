// Statements of an arithmetic, said otherwise: what they change, and in which words.
#include "harness/verdict/restatement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "harness/backends/isolation/arithmetic_json.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Restatement, EveryMemberIsNamedAsInJson) {
  const Json json = Arithmetic();
  std::set<std::string> keys, named;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  for (const StatedField& field : stated_fields(Arithmetic())) named.insert(std::string(field.key));
  EXPECT_EQ(named, keys);
}

TEST(Restatement, EveryMemberIsSaidOtherwise) {
  std::set<std::string> said;
  Arithmetic online;
  online.key_block = 64;
  for (const Arithmetic& a : {Arithmetic(), online}) {
    for (const Restatement& one : restatements(a)) {
      Arithmetic changed = a;
      one.make(changed);
      EXPECT_FALSE(changed == a) << one.probe;
      for (const StatedField& field : one.fields) {
        said.insert(std::string(field.key));
        const auto now = stated_fields(changed);
        EXPECT_NE(std::find(now.begin(), now.end(), field), now.end()) << field.key;
      }
    }
  }
  for (const StatedField& field : stated_fields(Arithmetic())) {
    if (field.key == "stored_parts") continue;      // a type of results that wait, which `parts` stands for
    if (field.key == "varying_order") continue;     // bounds hold for any order: no result is right by it
    if (field.key.ends_with("_operand")) continue;  // too many ways to be right by chance: a backend states them itself
    if (field.key.ends_with("_rounding")) continue;                                  // likewise
    if (field.key.ends_with("_sum") || field.key.ends_with("_roundings")) continue;  // likewise
    if (field.key == "weight_factor" || field.key == "exp_absolute" || field.key == "exp_argument" ||
        field.key == "rescale_ulps")
      continue;
    EXPECT_TRUE(said.contains(std::string(field.key))) << field.key;
  }
}

TEST(Restatement, IsWrittenInTheLanguageOfTheBackend) {
  const std::vector<StatedField> fields = {{"stored_weights", "bf16"}, {"normalised_before_storage", "true"},
                                           {"scale", "folded_log2e"},  {"division", "opencl_division"},
                                           {"base2", "false"},         {"exp_ulps", "8"}};
  EXPECT_EQ(statement_text({fields[0], fields[1], fields[4]}),
            "stored_weights=bf16, normalised_before_storage, base2=false");
  EXPECT_EQ(
      statement_code(fields, language_of("python:mine:attention")),
      "arithmetic={\"stored_weights\": \"bf16\", \"normalised_before_storage\": True, \"scale\": \"folded_log2e\", "
      "\"division\": \"opencl_division\", \"base2\": False, \"exp_ulps\": 8}");
  EXPECT_EQ(statement_code({fields[0]}, language_of("here:attention")), "arithmetic={\"stored_weights\": \"bf16\"}");
  EXPECT_EQ(statement_code(fields, language_of("./libmine.so")),
            "arithmetic->stored_weights = ATTEST_BF16; arithmetic->normalised_before_storage = 1; "
            "arithmetic->scale = ATTEST_SCALE_FOLDED_LOG2E; arithmetic->division = ATTEST_DIVISION_OPENCL; "
            "arithmetic->base2 = 0; arithmetic->exp_ulps = 8;");
  EXPECT_EQ(statement_code(fields, language_of("")),
            "arithmetic.stored_weights = DType::bf16; arithmetic.normalised_before_storage = true; "
            "arithmetic.scale = ScalePlacement::folded_log2e; arithmetic.division = Division::opencl_division; "
            "arithmetic.base2 = false; arithmetic.exp_ulps = 8;");
}

/// The table of members in backends/ARITHMETIC.md, for C and Python in one.
TEST(Restatement, EveryMemberStandsInTheTableOfTheDocument) {
  std::ifstream file(std::string(ATTEST_SOURCE_DIR) + "/backends/ARITHMETIC.md");
  ASSERT_TRUE(file);
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) rows.insert(line.substr(3, line.find('`', 3) - 3));
  }
  std::ifstream header(std::string(ATTEST_SOURCE_DIR) + "/backends/plugin/attest/attest_plugin.h");
  std::ostringstream text;
  text << header.rdbuf();
  for (const StatedField& field : stated_fields(Arithmetic())) {
    EXPECT_TRUE(rows.contains(std::string(field.key))) << field.key;
    EXPECT_NE(text.str().find(field.key), std::string::npos) << field.key;
  }
}

}  // namespace
}  // namespace attest

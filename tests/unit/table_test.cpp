// Tables in their three formats, with cells that mean something in each.
#include "harness/base/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attest {
namespace {

Table small_table() {
  Table table({{"backend", false, 9}, {"pass", true, 5}, {"case"}});
  table.add({"eigen", "1234567", "seq=4 dim=4"});
  table.add({"\xc3\xa9tude", "", ""});
  return table;
}

TEST(Table, LinesUpInText) {
  EXPECT_EQ(small_table().printed(TableFormat::text),
            "backend       pass  case\n"
            "eigen      1234567  seq=4 dim=4\n"
            "\xc3\xa9tude            -  -\n");
}

TEST(Table, IsCsv) {
  EXPECT_EQ(small_table().printed(TableFormat::csv),
            "backend,pass,case\n"
            "eigen,1234567,seq=4 dim=4\n"
            "\xc3\xa9tude,,\n");
}

TEST(Table, IsMarkdown) {
  EXPECT_EQ(small_table().printed(TableFormat::markdown),
            "| backend | pass | case |\n"
            "|---|---:|---|\n"
            "| eigen | 1234567 | seq=4 dim=4 |\n"
            "| \xc3\xa9tude | &#45; | &#45; |\n");
}

/// A cell changes neither its row nor what reads it.
TEST(Table, EscapesItsCells) {
  Table table({{"reason"}, {"error", true}});
  table.add({"=1+2,\"x\"\n| <b>\x1b[2J", "-inf"});
  EXPECT_EQ(table.printed(TableFormat::csv), "reason,error\n\"'=1+2,\"\"x\"\"\\x0a| <b>\\x1b[2J\",-inf\n");
  EXPECT_EQ(table.printed(TableFormat::text), "reason                    error\n=1+2,\"x\"\\x0a| <b>\\x1b[2J   -inf\n");
  EXPECT_EQ(table.printed(TableFormat::markdown),
            "| reason | error |\n|---|---:|\n"
            "| &#61;1+2,\"x\"&#92;x0a&#124; &#60;b&#62;&#92;x1b&#91;2J | &#45;inf |\n");
}

TEST(Table, TakesARowForItsColumnsAlone) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add({"one"}), std::invalid_argument);
  EXPECT_EQ(table.rows(), 0u);
}

}  // namespace
}  // namespace attest

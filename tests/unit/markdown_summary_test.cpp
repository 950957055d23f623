// The summary for CI: appended, bounded, and nothing in it that a name or reason could turn into markup.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "tests/unit/report_run.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(MarkdownSummary, TellsARunBehindWhatIsThere) {
  const Folder folder;
  const auto path = folder / "summary.md";
  std::ofstream(path) << "before\n";
  report_a_run(*markdown_summary(path));
  const std::string text = text_of(path);
  EXPECT_TRUE(text.starts_with("before\n## attest: wrong\n\nbad; right: good; 1 pass, 2 fail, 1 refused")) << text;
  for (const char* part : {"| good | 1 | 0 | 1 | 0 | 0.5 | seq=4 dim=4 |\n", "- good refuses what is not listed\n",
                           "- bad would be right if it states stored&#95;weights=bf16 for calls in f32: <code>",
                           "- 2 x bad: outside the bound\n  - <code>attest check --backend bad 'seq=4 dim=4'</code>: o "
                           "is &#60;wrong&#62;\n",
                           "smallest found: <code>attest check", "### Refused\n\n- 1 x good: too long &#38; wide\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "is not in:\n" << text;
  }
  EXPECT_EQ(text.find("<wrong>"), std::string::npos);
  report_a_run(*markdown_summary(path));
  EXPECT_EQ(text_of(path).size(), 2 * text.size() - std::string("before\n").size());
}

TEST(MarkdownSummary, StaysShortAndHarmless) {
  const Folder folder;
  const auto path = folder / "summary.md";
  const auto report = markdown_summary(path);
  report->begin({});
  Counts counts;
  for (int n = 0; n < 3000; ++n) {
    const Verdict v = verdict_of("bad", Status::fail, "seq=4 dim=4", "cause " + std::to_string(n),
                                 "</code><script>\n# @everyone [x](http://y) | `" + std::string(100'000, 'x'));
    counts.add(v);
    report->verdict(v);
  }
  report->end(counts, 1, {});
  const std::string text = text_of(path);
  EXPECT_LT(text.size(), 200'000u);
  for (const char* part : {"<script", "\n# @", "@everyone", "](", "http://", "| `"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
  EXPECT_NE(text.find("2980"), std::string::npos);
}

TEST(MarkdownSummary, LeavesNothingWhereNothingRan) {
  const Folder folder;
  const auto path = folder / "summary.md";
  { const auto report = markdown_summary(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "before\n";
  { const auto report = markdown_summary(path); }
  EXPECT_EQ(text_of(path), "before\n");
  EXPECT_THROW(markdown_summary(folder / "nowhere" / "summary.md"), UserError);
  EXPECT_THROW(markdown_summary(folder / ""), UserError);
}

TEST(MarkdownSummary, SaysWhenItCantBeWritten) {
  const auto report = markdown_summary("/dev/full");
  EXPECT_THROW(report->end({}, 1, {}), OutputError);
}

}  // namespace
}  // namespace attest

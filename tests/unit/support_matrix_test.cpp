// Options by types, from verdicts.
#include "harness/report/support_matrix.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"

namespace attest {
namespace {

Verdict verdict_on(const std::string& case_line, Status status) {
  Verdict v;
  v.case_line = case_line;
  v.backend = "mine";
  v.status = status;
  return v;
}

using Words = std::vector<std::string>;

TEST(SupportMatrix, NamesTheOptionsOfACase) {
  EXPECT_EQ(options_used("seq=4 dim=4"), Words{"no option"});
  EXPECT_EQ(options_used("batch=2 dtype=f16 seq=4 dim=4 fill=huge seed=3"), Words{"no option"});
  EXPECT_EQ(options_used("heads=4/2 seq=4x8 dim=4/2"), (Words{"grouped heads", "Lq != Lk", "Dqk != Dv"}));
  EXPECT_EQ(options_used("seq=4x8 dim=4 causal align=bottom-right window=2:0 poison=hidden:k"),
            (Words{"Lq != Lk", "causal", "align=bottom-right", "window"}));
  EXPECT_EQ(options_used("seq=4 dim=4 mask=add:1HQK:normal"), Words{"mask=add"});
  EXPECT_EQ(options_used("seq=4 dim=4 out=o,lse,max k.strides=9,9,5,1 v.strides=9,9,5,1"),
            (Words{"out=lse", "out=max", "strides"}));
}

TEST(SupportMatrix, CountsWhatIsRightWrongAndRefused) {
  SupportMatrix matrix;
  matrix.add(verdict_on("seq=4 dim=4", Status::pass));
  matrix.add(verdict_on("seq=5 dim=4", Status::convention));
  matrix.add(verdict_on("seq=4 dim=4 causal", Status::fail));
  matrix.add(verdict_on("seq=5 dim=4 causal", Status::pass));
  matrix.add(verdict_on("dtype=f16 seq=4 dim=4 causal", Status::refused));
  matrix.add(verdict_on("dtype=f16 seq=4 dim=4 softcap=3", Status::pass));
  matrix.add(verdict_on("dtype=f16 seq=5 dim=4 softcap=3", Status::refused));
  matrix.add(verdict_on("seq=4 dim=4 softcap=3", Status::weak));
  matrix.add(verdict_on("a/file.safetensors", Status::pass));
  EXPECT_EQ(matrix.verdicts(), 8u);
  EXPECT_EQ(matrix.left_out(), 1u);
  EXPECT_EQ(matrix.table().printed(TableFormat::csv),
            "option,f32,f16\n"
            "no option,right 2,\n"
            "causal,wrong 1 of 2,refused 1\n"
            "softcap,unproven 1,\"right 1, refused 1\"\n");
}

TEST(SupportMatrix, ACaseThatIsNoneIsAnError) {
  SupportMatrix matrix;
  EXPECT_THROW(matrix.add(verdict_on("seq=4 dim=4 colour=red", Status::pass)), UserError);
}

}  // namespace
}  // namespace attest

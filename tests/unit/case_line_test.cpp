#include "reference/options/case_line.h"

#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(CaseLine, AcceptedLinesRoundTrip) {
  for (const char* line :
       {"seq=1 dim=1", "seq=0x5 dim=8", "batch=2 heads=6/2 seq=33x65 dim=80/40 causal align=bottom-right window=15:0",
        "seq=64 dim=64 mask=add:1H1K:neginf(0.3) poison=hidden:kv",
        "heads=3 seq=7 dim=5 v.layout=blhd k.strides=0,0,5,1 fill=ties seed=18446744073709551615",
        "dtype=bf16 batch=2 seq=128 dim=64 lengths=100,37 out=o,lse", "seq=8 dim=4 segments=q:3,5/k:4,4",
        "heads=2 seq=8 dim=4 alibi=0.5,0.25", "seq=8 dim=4 softcap=30 sinks=1.5", "heads=2 seq=8 dim=4 sinks=0,-inf",
        "seq=8 dim=4 causal prefix=3:causal", "batch=2 heads=2 seq=8 dim=4 alibi=1,2,3,4",
        "seq=8 dim=4 blocks=2x4:random(0.5) dropout=0.1", "seq=4x9 dim=4 causal past=5 paged=4",
        "batch=2 seq=4x9 dim=4 causal past=0,5",
        "batch=2 seq=4x9 dim=4 causal lengths=q:4,1/k:9,2 past=5,1 paged=4 layout=thd",
        "seq=8 dim=4 prefix=3 out.offset=3 q.fill=spread(88)", "heads=0 seq=4 dim=4"}) {
    const Problem problem = parse_case(line);
    EXPECT_EQ(print_case(problem), line);
    EXPECT_EQ(parse_case(print_case(problem)), problem);
    EXPECT_EQ(parse_case(print_call(problem)).call, problem.call);
  }
}

TEST(CaseLine, DefaultsAreLeftOut) {
  EXPECT_EQ(print_case(parse_case("dim=4/4 seq=4x4 heads=2/2 batch=1 dtype=f32 layout=bhld q.layout=bhld fill=normal "
                                  "q.fill=normal window=inf:inf scale=0.5 seed=0 out=o align=top-left past=0")),
            "heads=2 seq=4 dim=4");
  EXPECT_EQ(print_case(parse_case("seq=4 dim=8 q.strides=32,32,8,1")), "seq=4 dim=8");
  EXPECT_EQ(print_case(parse_case("seq=4x8 dim=4 causal align=top-left")), "seq=4x8 dim=4 causal align=top-left");
}

struct Rejected {
  const char* line;
  std::size_t column;
  const char* word = "";  ///< data that must stand in the message, where the column says too little
};

TEST(CaseLine, RejectedLinesPointAtTheToken) {
  for (const Rejected& r : std::vector<Rejected>{{"dim=4", 6, "seq"},
                                                 {"seq=4 seq=5 dim=4", 7},
                                                 {"seq=4x dim=4", 7},
                                                 {"seq=-1 dim=4", 5, "-1"},
                                                 {"seq=4 dim=0", 11},
                                                 {"heads=8/3 seq=4 dim=4", 1},
                                                 {"seq=4x8 dim=4 causal", 15, "align"},
                                                 {"seq=4 dim=4 window=-3:0", 20, "-3"},
                                                 {"seq=4 dim=4 mask=bool", 18, "bool:BHQK"},
                                                 {"seq=4 dim=4 mask=bool:BHKQ:all", 23, "BHKQ"},
                                                 {"seq=4 dim=4 dtype=f31", 19, "f32"},
                                                 {"seq=4 dim=4 colour=red", 13, "colour"},
                                                 {"batch=2 seq=4 dim=4 lengths=4", 21},
                                                 {"seq=4 dim=4 lengths=5", 13},
                                                 {"seq=99999999999999999999 dim=4", 5},
                                                 {"seq=4 dim=4 scale=inf", 19},
                                                 {"seq=4 dim=4 causal=1", 13},
                                                 {"seq=4 dim=4 softcap=-1", 21},
                                                 {"seq=4 dim=4 dropout=1", 21, "[0, 1)"},
                                                 {"seq=4 dim=4 out.strides=0,0,0,1", 25},
                                                 {"seq=4 dim=4 out.strides=4,4,1,1", 13},
                                                 {"seq=4000000000x1 dim=4000000000", 1},
                                                 {"seq=4 dim=4 past=2 align=top-left", 20},
                                                 {"seq=4 dim=4 mask=bool:BHQK:random(2)", 28},
                                                 {"seq=4 dim=4 fill=spread", 18},
                                                 {"seq=4 dim=4 mask.dtype=f32", 13}}) {
    try {
      parse_case(r.line);
      ADD_FAILURE() << r.line << " was accepted";
    } catch (const CaseError& error) {
      EXPECT_EQ(error.column(), r.column) << r.line << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(r.word), std::string::npos) << r.line << ": " << error.what();
    }
  }
}

TEST(CaseLine, NumbersPrintInTheShortestFormThatReadsBack) {
  EXPECT_EQ(print_number(0.1), "0.1");
  EXPECT_EQ(print_number(-1e9), "-1e+09");
  EXPECT_EQ(parse_case("seq=1 dim=1 scale=0.3333333333333333").call.scale_value(), 0.3333333333333333);
}

TEST(CaseLine, OptionsOfFilesMayNotSetSizes) {
  Problem sizes = parse_case("seq=4 dim=4");
  EXPECT_TRUE(with_options(sizes, "causal").call.causal);
  EXPECT_THROW(with_options(sizes, "seq=5"), CaseError);
}

TEST(Problem, OptionsThatCannotBeCombinedAreNamed) {
  const std::vector<std::pair<const char*, const char*>> lines = {
      {"seq=4 dim=4 layout=thd", "lengths"},
      {"seq=4 dim=4 layout=thd lengths=3 q.strides=64,16,4,1", "strides"},
      {"seq=4 dim=4 q.layout=thd", "layout=thd"},
      {"seq=4 dim=4 paged=2 out=raw", "every key"},
      {"seq=4 dim=4 lengths=3 layout=thd out=o,present", "present"},
      {"seq=4 dim=4 past=5", "more than Lk"},
      {"batch=2 seq=4 dim=4 past=1,5", "more than Lk"},
      {"batch=2 seq=4 dim=4 past=1,2,3", "3 counts for 2 batches"},
      {"batch=2 seq=4 dim=4 past=1,2 out=weights", "every key stored"},
      {"batch=2 seq=4 dim=4 past=1,2 out=present", "the same of all batches"},
      {"batch=2 seq=4 dim=4 lengths=4,4 past=1 layout=thd", "add paged=n"},
      {"seq=4 dim=4 past=2 layout=qkv", "qkv"},
      {"seq=4 dim=4 past=2 segments=2,2", "exclude"},
      {"seq=4 dim=4 segments=2,1", "add up"},
      {"heads=2 seq=4 dim=4 alibi=1,2,3", "one number per query head"},
      {"seq=4 dim=4 softcap=-1", "above 0"},
      {"seq=4 dim=4 dropout=1", "[0, 1)"}};
  for (const auto& [line, part] : lines) {
    const std::string told = complaint<CaseError>([&line = line] { parse_case(line); });
    EXPECT_NE(told.find(part), std::string::npos) << line << ": " << told;
  }
}

}  // namespace
}  // namespace attest

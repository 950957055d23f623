// The emulator rounds as it declares and is never accused; what it leaves out or adds to its declaration is found out.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/backends/plugin/arithmetic_rules.h"
#include "harness/probe/probe.h"
#include "tests/emulator/accusations.h"
#include "tests/emulator/declarations.h"
#include "tests/unit/helpers.h"

namespace attest::emulator {
namespace {

std::string joined_lines(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& line : list) text += line + "\n";
  return text;
}

/// A little of everything that rounding depends on.
const char* const kLines[] = {
    "seq=24x40 dim=16 scale=0.3 out=o,lse",
    "seq=24x40 dim=16 fill=spread(88) mask=add:11QK:normal out=o,lse",
    "seq=16x33 dim=8 align=top-left softcap=2.5 alibi=0.1 sinks=1 out=o,lse",
    "seq=64x1 dim=3 scale=0.3 fill=spread(300) mask=add:11QK:normal out=o,lse",
    "seq=16x48 dim=4 dropout=0.3 fill=cancel out=o,lse",
    "seq=8x64 dim=4 fill=denormal",
    "seq=7x3 dim=15 scale=2.5 fill=denormal k.fill=infinite(0.5) out=o,lse,weights,biased",
    "seq=16x24 dim=8 softcap=1 mask=add:11QK:normal out=o,raw,capped,biased,weights",
    "seq=12x40 dim=16 q.dtype=i8 k.dtype=i8 v.dtype=i8 q.scale=token k.scale=tensor v.scale=token out=o,lse",
    "seq=12x40 dim=16 k.dtype=e4m3 v.dtype=i8 k.scale=token v.scale=tensor out=o,lse",
    "pass=both heads=2/1 seq=6x12 dim=4 softcap=2.5 mask=add:11QK:normal sinks=1,0.5 dlse out=o,dq,dk,dv,dmask,dsinks",
    "pass=backward seq=6x16 dim=4 scale=0.3 dropout=0.3 fill=cancel dlse",
};

std::vector<std::string> accusations_on_lines(const Emulated& emulated, DType dtype) {
  std::vector<std::string> all;
  for (const char* line : kLines) {
    for (std::string& one : accuse(emulated, "dtype=" + std::string(name_of(dtype)) + " " + line, false).list) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

TEST(Emulator, IsNeverAccusedWithAnyStatementAlone) {
  for (DType dtype : {DType::f64, DType::f32}) {
    for (Statement& statement : every_statement(dtype)) {
      for (Behaviour behaviour : values_of<Behaviour>()) {
        statement.emulated.behaviour = behaviour;
        statement.emulated.seed = 12 + static_cast<std::uint64_t>(behaviour);
        const auto accusations = accusations_on_lines(statement.emulated, dtype);
        EXPECT_TRUE(accusations.empty()) << statement.name << "\n" << joined_lines(accusations);
      }
    }
  }
}

TEST(Emulator, IsNeverAccusedByAProbeWithAnyStatementAlone) {
  for (Statement& statement : every_statement(DType::f32)) {
    for (Behaviour behaviour : {Behaviour::random, Behaviour::adversary}) {
      statement.emulated.behaviour = behaviour;
      const auto accusations = accused_by_probes(statement.emulated);
      EXPECT_TRUE(accusations.empty()) << statement.name << "\n" << joined_lines(accusations);
    }
  }
}

std::vector<double> results(const Emulated& emulated, const std::string& line) {
  EmulatorBackend backend(emulated);
  const Problem problem = parse_case(line);
  const CaseInputs inputs = make_inputs(problem);
  return run_backend(backend, problem, inputs.views());
}

TEST(Emulator, EveryStatementChangesItsBits) {
  const std::vector<Statement> statements = every_statement(DType::f32);
  for (const Statement& statement : statements) {
    // The stage of weights is not among these bits.
    if (statement.name == "plain" || statement.name == "weights_from_lse") continue;
    bool differs = false;
    for (const std::string line :
         {"seq=12x80 dim=16 scale=0.3 fill=spread(8) softcap=9 mask=add:11QK:normal out=o,lse",
          "seq=12x80 dim=16 scale=0.3 fill=spread(200) out=o,lse", "seq=8x64 dim=4 fill=denormal",
          "pass=both heads=2/1 seq=12x80 dim=16 fill=spread(8) out=o,dq,dk,dv"}) {
      differs = differs || results(statement.emulated, line) != results(statements.front().emulated, line);
    }
    EXPECT_TRUE(differs) << statement.name;
  }
}

/// One statement that is true of the emulator and missing from, or added to, what it declares.
struct Untruth {
  const char* name;
  const char* truth;  ///< what it does, as fields of JSON
  const char* said;   ///< what it declares otherwise
};

Arithmetic with(const Arithmetic& arithmetic, const char* fields) {
  Json json = arithmetic;
  json.merge_patch(Json::parse(fields));
  return json.get<Arithmetic>();
}

Emulated emulated_with(const Untruth& untruth, std::uint64_t seed) {
  Emulated e;
  e.does = with(plain_arithmetic(DType::f32), untruth.truth);
  e.says = with(e.does, untruth.said);
  e.seed = seed;
  return e;
}

constexpr Untruth kLeftOut[] = {
    {"accumulator", R"({})", R"({"accumulator":"f64","stored_weights":"f64","stored_scores":"f64"})"},
    {"stored_weights f16", R"({"stored_weights":"f16"})", R"({"stored_weights":"f32"})"},
    {"stored_weights bf16", R"({"stored_weights":"bf16"})", R"({"stored_weights":"f16"})"},
    {"exp_ulps", R"({"exp_ulps":20})", R"({"exp_ulps":2})"},
    {"log_ulps", R"({"log_ulps":20})", R"({"log_ulps":2})"},
    {"tanh_ulps", R"({"tanh_ulps":20})", R"({"tanh_ulps":2})"},
    {"base2", R"({"base2":true})", R"({"base2":false})"},
    {"scale folded", R"({"base2":true,"scale":"folded_log2e"})", R"({"scale":"score"})"},
    {"scale split", R"({"scale":"split_root"})", R"({"scale":"score"})"},
    {"division reciprocal", R"({"division":"reciprocal"})", R"({"division":"ieee"})"},
    {"division opencl", R"({"division":"opencl_division"})", R"({"division":"reciprocal"})"},
    {"key_block", R"({"key_block":16})", R"({"key_block":0})"},
    {"key_block, smaller", R"({"key_block":16})", R"({"key_block":64})"},
    {"lazy_threshold", R"({"key_block":16,"lazy_threshold":5.545})", R"({"lazy_threshold":0})"},
    {"normalised_before_storage", R"({"normalised_before_storage":true})", R"({"normalised_before_storage":false})"},
    {"stored_scores f16", R"({"stored_scores":"f16","score_stores":1})", R"({"score_stores":0})"},
    {"stored_scores bf16", R"({"stored_scores":"bf16","score_stores":1})", R"({"stored_scores":"f16"})"},
    {"score_stores", R"({"stored_scores":"f16","score_stores":2})", R"({"score_stores":1})"},
    {"sum_of_stored", R"({"stored_weights":"f16","sum_of_stored":true})", R"({"sum_of_stored":false})"},
    {"flush_to_zero", R"({"flush_to_zero":true})", R"({"flush_to_zero":false})"},
    {"fused_log2e", R"({"fused_log2e":true})", R"({"fused_log2e":false})"},
    {"no_maximum", R"({"no_maximum":true})", R"({"no_maximum":false})"},
    {"weights_from_lse", R"({"weights_from_lse":true})", R"({"weights_from_lse":false})"},
    {"query_operand bf16", R"({"query_operand":"bf16"})", R"({"query_operand":"exact"})"},
    {"key_operand bf16", R"({"key_operand":"bf16"})", R"({"key_operand":"exact"})"},
    {"value_operand bf16", R"({"value_operand":"bf16"})", R"({"value_operand":"exact"})"},
    {"weight_operand bf16", R"({"weight_operand":"bf16"})", R"({"weight_operand":"exact"})"},
    {"query_operand tf32", R"({"query_operand":"tf32"})", R"({"query_operand":"exact"})"},
    {"value_operand tf32", R"({"value_operand":"tf32"})", R"({"value_operand":"exact"})"},
    {"weight_operand tf32", R"({"weight_operand":"tf32"})", R"({"weight_operand":"exact"})"},
    {"value_operand bf16", R"({"value_operand":"bf16"})", R"({"value_operand":"tf32"})"},
    {"query int8", R"({"query_operand":"int8","query_rounding":{"step":0}})",
     R"({"query_operand":"exact","query_rounding":{"step":1}})"},
    {"key int8", R"({"key_operand":"int8","key_rounding":{"step":0}})",
     R"({"key_operand":"exact","key_rounding":{"step":1}})"},
    {"value int8", R"({"value_operand":"int8","value_rounding":{"step":0}})",
     R"({"value_operand":"exact","value_rounding":{"step":1}})"},
    {"key int4", R"({"key_operand":"int4","key_rounding":{"step":0}})", R"({"key_operand":"int8"})"},
    {"value e2m1", R"({"value_operand":"e2m1","value_rounding":{"step":0}})", R"({"value_operand":"e4m3"})"},
    {"a step of all tokens", R"({"key_operand":"int4","key_rounding":{"step":0}})", R"({"key_rounding":{"rows":1}})"},
    {"a step of all columns", R"({"value_operand":"int4","value_rounding":{"step":0}})",
     R"({"value_rounding":{"rows":1}})"},
    {"a larger fixed step", R"({"value_operand":"int8","value_rounding":{"step":0.125}})",
     R"({"value_rounding":{"step":0.03125}})"},
    {"powers of two", R"({"value_operand":"int4","value_rounding":{"step":0,"power_of_two":true}})",
     R"({"value_rounding":{"power_of_two":false}})"},
    {"value tf32 cut", R"({"value_operand":"tf32","value_rounding":{"directed":true}})",
     R"({"value_rounding":{"directed":false}})"},
    {"value bf16x3", R"({"value_operand":"bf16x3","weight_operand":"bf16x3"})",
     R"({"value_operand":"exact","weight_operand":"exact"})"},
    {"a mean in bf16", R"({"key_rounding":{"mean_removed":true,"mean_format":"e5m2"}})",
     R"({"key_rounding":{"mean_removed":false,"mean_format":"exact"}})"},
    {"steps of weights", R"({"weight_operand":"int4","weight_rounding":{"step":0}})",
     R"({"weight_rounding":{"rows":2}})"},
    {"score_sum f16", R"({"score_sum":{"format":"f16"}})", R"({"score_sum":{"format":"accumulator"}})"},
    {"score_sum bf16", R"({"score_sum":{"format":"bf16"}})", R"({"score_sum":{"format":"f16"}})"},
    {"score_sum aligned", R"({"score_sum":{"bits":13,"width":32,"directed":true}})",
     R"({"score_sum":{"bits":0,"width":1,"directed":false}})"},
    {"value_sum f16", R"({"value_sum":{"format":"f16"}})", R"({"value_sum":{"format":"accumulator"}})"},
    {"value_sum promoted", R"({"value_sum":{"format":"f16"}})", R"({"value_sum":{"format":"f16","promote":1}})"},
    {"value_sum bits", R"({"value_sum":{"bits":13,"width":32,"directed":true}})", R"({"value_sum":{"bits":0}})"},
    {"weight_operand e4m3", R"({"weight_operand":"e4m3","weight_factor":256})",
     R"({"weight_operand":"f16","weight_factor":1})"},
    {"sum_of_stored int8", R"({"weight_operand":"int8","weight_factor":127,"sum_of_stored":true})",
     R"({"sum_of_stored":false})"},
    {"exp_absolute", R"({"exp_absolute":0.001})", R"({"exp_absolute":0.0001})"},
    {"exp_argument", R"({"exp_argument":"bf16"})", R"({"exp_argument":"exact"})"},
    {"weight_sum f16", R"({"weight_sum":{"format":"f16"}})", R"({"weight_sum":{"format":"accumulator"}})"},
};

/// A statement as Python takes it: members of members by a dot.
Arithmetic stated_in(const std::filesystem::path& file) {
  Json json = plain_arithmetic(DType::f32);
  std::ifstream stream(file);
  const Json stated = Json::parse(stream);
  for (const auto& [key, value] : stated.items()) {
    std::string path = "/" + key;
    std::replace(path.begin(), path.end(), '.', '/');
    json.at(Json::json_pointer(path)) = value;  // which is there
  }
  return json.get<Arithmetic>();
}

TEST(Emulator, StatementsOfKnownKernelsAreTrueOfThemAndNeeded) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEST_SOURCE_DIR "/backends/declarations")) {
    Emulated e;
    e.does = e.says = stated_in(entry.path());
    EXPECT_EQ(fault_of(e.says).value_or("sound"), "sound") << entry.path();
    for (Behaviour behaviour : values_of<Behaviour>()) {
      e.behaviour = behaviour;
      e.seed = 5 + static_cast<std::uint64_t>(behaviour);
      const auto accusations = accusations_on_lines(e, DType::f32);
      EXPECT_TRUE(accusations.empty()) << entry.path() << joined_lines(accusations);
    }
    e.behaviour = Behaviour::random;
    EXPECT_TRUE(accused_by_probes(e).empty()) << entry.path() << joined_lines(accused_by_probes(e));
    e.says = plain_arithmetic(DType::f32);
    EXPECT_FALSE(accusations_on_lines(e, DType::f32).empty()) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 5);
}

TEST(Emulator, IsAccusedOfWhateverItLeavesOut) {
  for (const Untruth& untruth : kLeftOut) {
    const Emulated e = emulated_with(untruth, 4);
    std::vector<std::string> accusations = accused_by_probes(e);
    if (accusations.empty()) accusations = accusations_on_lines(e, DType::f32);
    EXPECT_FALSE(accusations.empty()) << untruth.name;
  }
}

constexpr Untruth kTooWide[] = {
    {"accumulator", R"({"accumulator":"f64","stored_weights":"f64","stored_scores":"f64"})",
     R"({"accumulator":"f32","stored_weights":"f32","stored_scores":"f32"})"},
    {"stored_weights", R"({})", R"({"stored_weights":"bf16"})"},
    {"stored_weights", R"({"stored_weights":"f16"})", R"({"stored_weights":"bf16"})"},
    {"exp_ulps", R"({})", R"({"exp_ulps":20})"},
    {"log_ulps", R"({})", R"({"log_ulps":20})"},
    {"tanh_ulps", R"({})", R"({"tanh_ulps":20})"},
    {"base2", R"({})", R"({"base2":true})"},
    {"scale", R"({})", R"({"scale":"split_root"})"},
    {"division", R"({})", R"({"division":"reciprocal"})"},
    {"key_block", R"({})", R"({"key_block":16})"},
    {"key_block", R"({"key_block":64})", R"({"key_block":8})"},
    {"lazy_threshold", R"({"key_block":16})", R"({"lazy_threshold":8})"},
    {"normalised_before_storage", R"({})", R"({"normalised_before_storage":true})"},
    {"fused_log2e", R"({})", R"({"fused_log2e":true})"},
    {"no_maximum", R"({})", R"({"no_maximum":true})"},
    {"weights_from_lse", R"({})", R"({"weights_from_lse":true})"},
    {"stored_scores", R"({})", R"({"stored_scores":"f16","score_stores":1})"},
    {"stored_scores", R"({"stored_scores":"f16","score_stores":1})", R"({"score_stores":9})"},
};

TEST(Emulator, AnyStatementThatIsTooWideIsFoundOut) {
  for (const Untruth& untruth : kTooWide) {
    EmulatorBackend backend(emulated_with(untruth, 4));
    bool found = false;
    for (const ProbedStatement& statement : probe_arithmetic(backend)) {
      if (statement.name != std::string(untruth.name) + ", f32") continue;
      found = statement.too_wide;
      EXPECT_FALSE(statement.holds) << untruth.name;
      EXPECT_EQ(statement.verdict(),
                "TOO WIDE: declares " + statement.stated + ", shows " + statement.observed + "; " + statement.shown);
      EXPECT_NE(statement.shown.find(" of \"seq="), std::string::npos) << statement.shown;
    }
    EXPECT_TRUE(found) << untruth.name;
  }
}

/// Seeds for which the emulator walks from the first key on, from the last one, and merges states of blocks in pairs.
constexpr std::uint64_t kWalks[] = {0, 7, 14};

TEST(Emulator, MayTakeItsBlocksInAnyOrder) {
  for (const std::uint64_t seed : kWalks) {
    for (const std::int64_t block : {1, 24}) {
      for (const double lag : {0.0, 5.545}) {
        for (const bool fused : {false, true}) {
          Emulated e;
          e.does = plain_arithmetic(DType::f32);
          e.does.key_block = block;
          e.does.lazy_threshold = lag;
          e.does.fused_log2e = fused;
          e.says = e.does;
          e.seed = seed;
          std::vector<std::string> accusations = accused_by_probes(e);
          for (std::string& one : accusations_on_lines(e, DType::f32)) accusations.push_back(std::move(one));
          EXPECT_TRUE(accusations.empty()) << joined_lines(accusations);
          if (block == 1) continue;
          e.says.key_block = 4 * block;  // as many steps again and again
          const std::vector<std::string> found = accused_by_probes(e);
          EXPECT_TRUE(found.size() >= 1 && found[0].find("key_block") != std::string::npos) << joined_lines(found);
          EXPECT_TRUE(found.size() < 4) << "a block for each type, and nothing else\n" << joined_lines(found);
        }
      }
    }
  }
}

TEST(Emulator, MayStateABlockThatIsALittleSmallerThanItsOwn) {
  for (const std::uint64_t seed : kWalks) {
    for (const std::int64_t block : {24, 64}) {
      Emulated e;
      e.does = plain_arithmetic(DType::f32);
      e.does.key_block = block;
      e.says = e.does;
      e.says.key_block = 16;
      e.seed = seed;
      const std::vector<std::string> accusations = accused_by_probes(e);
      EXPECT_TRUE(accusations.empty()) << joined_lines(accusations);
    }
  }
}

TEST(Emulator, MayLoseWhatALaggingMaximumShrinks) {
  for (const double lag : {5.545, 40.0}) {
    for (const std::int64_t block : {8, 32}) {
      for (const bool backwards : {false, true}) {
        for (const bool flush : {false, true}) {
          Emulated e;
          e.does = plain_arithmetic(DType::f32);
          e.does.key_block = block;
          e.does.lazy_threshold = lag;
          e.does.flush_to_zero = flush;
          e.says = e.does;
          e.seed = kWalks[backwards];
          for (const char* line : {"seq=97x200 dim=16 scale=-0.3 fill=mixed seed=1387",
                                   "seq=64x96 dim=4 fill=spread(88) v.fill=mixed out=o,lse"}) {
            const Accusations found = accuse(e, line, false);
            EXPECT_TRUE(found.list.empty()) << joined_lines(found.list);
          }
        }
      }
    }
  }
}

TEST(Emulator, IsToldWhichStatementsTogetherWouldBeTrue) {
  const std::vector<std::pair<Untruth, std::string>> list = {
      {{"P divided and stored", R"({"stored_weights":"bf16","normalised_before_storage":true})",
        R"({"stored_weights":"f32","normalised_before_storage":false})"},
       "stored_weights and normalised_before_storage, f32: f32, false; bf16, true"},
      {{"stored twice", R"({"stored_weights":"f16","sum_of_stored":true})",
        R"({"stored_weights":"f32","sum_of_stored":false})"},
       "stored_weights and sum_of_stored, f32: f32, false; f16, true"},
  };
  for (const auto& [untruth, told] : list) {
    EmulatorBackend backend(emulated_with(untruth, 4));
    std::vector<std::string> found;
    for (const ProbedStatement& s : probe_arithmetic(backend)) {
      if (s.dtype == DType::f32 && !s.holds) found.push_back(s.name + ": " + s.stated + "; " + s.observed);
    }
    EXPECT_EQ(found, std::vector<std::string>{told}) << untruth.name;
  }
}

TEST(Emulator, MayDeclareAFlushThatNeverHappens) {
  const Untruth never = {"flush", "{}", R"({"flush_to_zero":true})"};
  EXPECT_TRUE(accused_by_probes(emulated_with(never, 4)).empty());
}

}  // namespace
}  // namespace attest::emulator

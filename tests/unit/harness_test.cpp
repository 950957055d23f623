#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "harness/cases/fill.h"
#include "harness/cases/memory.h"
#include "harness/cases/safetensors.h"
#include "harness/cases/suites.h"
#include "harness/comparison/compare.h"
#include "harness/probe/probe.h"
#include "harness/speed/roof.h"
#include "harness/verdict/committed_lists.h"
#include "reference/work.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Fill, BitsAreFixedForAllTime) {
  // Changing a fill silently changes every committed case: these are the first numbers of seed 7.
  const Problem p = parse_case("seq=4 dim=4 seed=7");
  const TensorFill fill(p, TensorId::q);
  EXPECT_EQ(hash_words(7, 0, 0), hash_words(7, 0, 0));
  EXPECT_NE(hash_words(7, 0, 0), hash_words(8, 0, 0));
  double sum = 0, squares = 0;
  const Problem big = parse_case("seq=100 dim=100 seed=7");
  const TensorFill many(big, TensorId::k);
  for (int l = 0; l < 100; ++l) {
    for (int d = 0; d < 100; ++d) {
      const double x = many.at(0, 0, l, d);
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.05);
}

TEST(Fill, DataDoNotDependOnTheLayout) {
  const Computed a("batch=2 heads=3 seq=5 dim=4"), b("batch=2 heads=3 seq=5 dim=4 layout=blhd q.offset=3");
  for (std::size_t r = 0; r < a.attention.rows.size(); ++r) EXPECT_EQ(a.row(r).output, b.row(r).output);
}

TEST(Fill, SpreadGivesScoresOfThatSize) {
  const Computed c("seq=200 dim=64 fill=spread(88)");
  double largest = 0;
  for (double s : c.row(0).raw) largest = std::max(largest, std::fabs(s));
  EXPECT_GT(largest, 60);
  EXPECT_LT(largest, 300);
}

Comparison compare_one(double got, double expected, double bound) {
  Comparison c;
  c.element("o", {0, 0, 0, 0}, got, expected, bound);
  return c;
}

TEST(Compare, ClassComesBeforeTheBound) {
  EXPECT_FALSE(compare_one(1, 1, 0).failed());
  EXPECT_TRUE(compare_one(1.1, 1, 0.05).failed());
  EXPECT_TRUE(compare_one(kNaN, 1, 1e9).failed());
  EXPECT_TRUE(compare_one(kInfinity, 1, 1e9).failed());
  EXPECT_FALSE(compare_one(kNaN, kNaN, 0).failed());
  EXPECT_FALSE(compare_one(-kInfinity, kNaN, 0).failed());
  EXPECT_TRUE(compare_one(1, kNaN, 1e9).failed());  // cubecl PR#1070
  EXPECT_FALSE(compare_one(-kInfinity, -kInfinity, 0).failed());
  EXPECT_TRUE(compare_one(kInfinity, -kInfinity, 1e9).failed());
  EXPECT_TRUE(compare_one(1, 1.5, kNaN).failed());
  EXPECT_TRUE(compare_one(0, 0.5, 0).failed());
}

TEST(Compare, BoundsThatProveNothingAreMistrusted) {
  EXPECT_TRUE(compare_one(0.1, 0.5, 0.6).mistrusted());
  EXPECT_TRUE(compare_one(7, 0.5, kInfinity).mistrusted());
  EXPECT_FALSE(compare_one(0.5, 0.5, 0.1).mistrusted());
  EXPECT_FALSE(compare_one(0, 0, 0).mistrusted());
}

TEST(GuardedOutputs, NoticesWritesOutsideAndElementsLeftOut) {
  const Problem p = parse_case("seq=4 dim=4 out.strides=32,32,8,2");
  GuardedOutputs outputs(p);
  EXPECT_NE(outputs.inspect().find("unwritten"), std::string::npos);
  const View<float> view = outputs.views().out.as<float>();
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 4; ++c) view(0, 0, i, c) = 1;
  }
  EXPECT_EQ(outputs.inspect(), "");
  view.data[1] = 1;  // between two elements
  EXPECT_NE(outputs.inspect().find("wrote outside"), std::string::npos);
}

TEST(RowsToCheck, AllOrASampleWithTheEnds) {
  EXPECT_EQ(rows_to_check(parse_case("batch=2 heads=3 seq=5 dim=4"), 1e9).size(), 30u);
  const Problem big = parse_case("heads=2 seq=4096 dim=64");
  const auto rows = rows_to_check(big, 1e7);
  EXPECT_EQ(rows, rows_to_check(big, 1e7));
  EXPECT_LT(rows.size(), 100u);
  EXPECT_EQ(rows.front(), (RowIndex{0, 0, 0}));
  EXPECT_EQ(rows.back(), (RowIndex{0 + big.batch - 1, 1, 4095}));
}

TEST(VisiblePairs, AgreeWithTheDefinition) {
  for (const char* line : {"heads=2 seq=9x13 dim=2 causal align=bottom-right",
                           "seq=13x9 dim=2 causal align=bottom-right", "seq=33x1 dim=8 align=bottom-right window=1:7",
                           "seq=20 dim=2 window=3:2", "seq=9 dim=2 mask=bool:11QK:random(0.5)"}) {
    const Computed c(line);
    double pairs = 0;
    for (const Row& row : c.attention.rows) pairs += static_cast<double>(row.visible_count);
    EXPECT_EQ(count_visible_pairs(c.problem, c.inputs.views()), pairs) << line;
  }
}

std::vector<std::byte> file_of(const std::string& header, std::size_t data, std::uint64_t length = 0) {
  const std::uint64_t n = length ? length : header.size();
  std::vector<std::byte> bytes(8 + header.size() + data);
  std::memcpy(bytes.data(), &n, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

TEST(Safetensors, ReadsWhatIsRight) {
  const auto file = parse_safetensors(
      file_of(R"({"__metadata__":{"scale":"1"},"q":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8), "x");
  EXPECT_EQ(file.metadata.at("scale"), "1");
  EXPECT_EQ(file.tensors.at("q").at(1), 0);
}

TEST(Safetensors, HostileFilesGetOneSentence) {
  const std::string tensor = R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto rejects = [](const std::vector<std::byte>& bytes, const char* word) {
    try {
      parse_safetensors(bytes, "hostile");
      ADD_FAILURE() << "accepted; expected " << word;
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(word), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  };
  rejects({}, "too few");
  rejects(file_of(tensor, 0), "truncated");
  rejects(file_of(tensor, 8, 1u << 30), "limit");
  rejects(file_of(tensor, 8, 5000), "truncated");
  rejects(file_of("[1,2]", 0), "not a JSON object");
  rejects(file_of("{\"q\":", 0), "not a JSON object");
  rejects(file_of(std::string(100000, '['), 0), "not a JSON object");
  rejects(file_of(R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,4]}})", 4), "F8_E4M3");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "not a size");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8), "not a size");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}})", 8),
          "overflows");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "needs 12 bytes");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "backwards");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 9), "two sizes");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4), "axes");
  rejects(file_of(R"({"q":7})", 0), "needs dtype");
  rejects(file_of(R"({"__metadata__":{"a":1}})", 0), "strings");
}

TEST(Suites, EveryCommittedLineIsCanonicalAndUnique) {
  for (const Suite& suite : find_suites()) EXPECT_GT(load_suite(suite).size(), 0u) << suite.name;
}

TEST(Suites, MatrixIsLargeAndCheap) {
  std::vector<double> costs;
  for (const Case& one : load_suite(find_suite("matrix"))) costs.push_back(dense_multiply_adds(one.problem));
  ASSERT_GE(costs.size(), 1200u);
  std::sort(costs.begin(), costs.end());
  EXPECT_LE(costs[costs.size() / 2], 2e6);
}

TEST(Suites, UnknownNamesSuggestTheNearest) {
  try {
    find_suite("smoek");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("smoke"), std::string::npos);
  }
}

TEST(Refusals, AreComparedWithTheCommittedList) {
  Verdict v;
  v.backend = "example";
  v.case_line = "seq=4 dim=4";
  v.status = Status::refused;
  EXPECT_EQ(compare_refusals({v}).size(), 1u);
  v.status = Status::pass;
  EXPECT_TRUE(compare_refusals({v}).empty());
}

TEST(Memory, AbsurdSizesAreRefusedBeforeAllocating) {
  EXPECT_THROW(check_memory(parse_case("seq=999999999 dim=64"), "x"), UserError);
  EXPECT_NO_THROW(check_memory(parse_case("seq=9 dim=64"), "x"));
}

TEST(Verdicts, MistakesOfABackendAreFailuresNotCrashes) {
  const BackendSet faulty(faulty::faulty_backends(), {"throws_now_and_then", "no_output"}, {1, ""});
  const Case one = case_from_line("seq=3 dim=2");
  const PreparedCase prepared(one, faulty.all(), 1);
  for (Backend* backend : faulty.all()) {
    const Verdict verdict = prepared.check(*backend);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_NE(verdict.repro.find("seq=3 dim=2"), std::string::npos);
  }
}

TEST(Roof, OfOneThreadIsPositive) {
  const Roof roof = measure_roof(1);
  EXPECT_GT(roof.fma_gflops_f32, 1);
  EXPECT_GT(roof.read_gbps, 0.1);
}

TEST(Probe, AFalseStatementIsFound) {
  // These backends state attest's own conventions and do something else.
  const std::vector<std::array<std::string, 3>> lies = {{"lse_in_base_2", "lse_base", "2"},
                                                        {"nan_on_empty_row", "empty_row", "nan"},
                                                        {"window_off_by_one", "window", "W keys"},
                                                        {"hidden_nan_leaks", "hidden_nan", "leaks"},
                                                        {"lse_plus_infinity", "lse_of_empty_row", "inf"},
                                                        {"cap_after_mask", "softcap", "after bias"},
                                                        {"softcap_dropped", "align", "as asked"}};
  for (const auto& [name, field, observed] : lies) {
    const BackendSet set(faulty::faulty_backends(), {name}, {1, ""});
    std::map<std::string, std::string> found;
    for (const ProbedStatement& s : probe_conventions(*set.all().front())) found[s.name] = s.observed;
    ASSERT_TRUE(found.contains(field)) << field;
    EXPECT_EQ(found[field], observed) << name;
  }
}

TEST(Inputs, ValuesThatTheTypeCannotHoldAreRefusedByName) {
  try {
    make_inputs(parse_case("dtype=f16 seq=4 dim=4 fill=constant(1e6)"));
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("f16"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("65504"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attest

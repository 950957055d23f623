// Files shrink as lines do: to numbers that a person can follow.
#include "harness/search/shrink_file.h"

#include <fmt/format.h>

#include <map>

#include "harness/cases/case_file.h"
#include "harness/comparison/expectation.h"
#include "harness/search/shrink_case.h"
#include "tests/faulty/faulty.h"
#include "tests/faulty/tampered.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Case as_file(const std::string& line) { return case_from_tensors(*plain_file(case_from_line(line)), "file"); }

TEST(ShrinkFile, AFileSaysWhatItsLineSaid) {
  for (const char* line :
       {"batch=2 heads=4/2 seq=5x7 dim=3/2 causal align=bottom-right mask=add:B1QK:neginf(0.3) softcap=2",
        "dtype=f16 heads=2 seq=4 dim=5 mask=bool:11QK:random(0.5) window=1:0 scale=-0.5",
        "dtype=bf16 seq=3 dim=4 layout=blhd q.offset=3 sinks=1 alibi=0.5 lengths=2",
        "batch=2 heads=2 seq=3x7 dim=4 past=4 causal mask=bool:B1QK:random(0.7)",
        "heads=2 seq=4x6 dim=3 dropout=0.4 seed=8",
        "batch=2 heads=4/2 seq=2x9 dim=3 paged=4 lengths=5,9 causal align=bottom-right",
        "batch=2 heads=4/2 seq=2x9 dim=3 paged=4 lengths=5,9 causal past=3",
        "batch=3 heads=2 seq=4x9 dim=3 past=5,2,0 causal mask=bool:BHQK:random(0.7) lengths=9,3,4",
        "batch=3 heads=4/2 seq=8x40 dim=16 causal past=32,9,0 lengths=q:8,1,3/k:40,10,3 paged=16 layout=thd",
        "batch=2 heads=2 seq=2x9 dim=3 paged=4 past=5,1 lengths=8,9 mask=bool:BHQK:random(0.6) dropout=0.3",
        "batch=3 heads=2 seq=5x6 dim=3 layout=thd lengths=q:5,1,3/k:6,2,3 causal align=bottom-right"}) {
    const Case source = case_from_line(line), again = as_file(line);
    const Attention a = attention(source.problem, make_inputs(source.problem).views());
    const Attention b = attention(again.problem, again.inputs->views());
    // Packed sequences have no rows for padding.
    const Call& p = source.problem.call;
    std::size_t at = 0, padded = 0;
    each_index({p.batch, p.query_heads, p.query_length, 1},
               [&](std::int64_t entry, std::int64_t, std::int64_t i, std::int64_t) {
                 const std::size_t other = padded++;
                 if (p.packed_sequences() && i >= p.query_count(entry)) return;
                 ASSERT_LT(at, a.rows.size()) << line;
                 EXPECT_EQ(a.rows[at++].output, b.rows.at(other).output) << line;
               });
    EXPECT_EQ(at, a.rows.size()) << line;
  }
}

/// The reference's results by name and index.
std::map<std::string, double> results_of(const Case& source) {
  std::optional<CaseInputs> made;
  if (!source.inputs) made = make_inputs(source.problem);
  const Inputs inputs = source.inputs ? source.inputs->views() : made->views();
  const Expectation e = expect(source.problem, inputs, {}, 1, kInfinity);
  std::map<std::string, double> results;
  for (const TensorId id : outputs_of(source.problem)) {
    const Index4 n = seen_shape(source.problem, id);
    std::size_t at = 0;
    const auto add = [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      results[fmt::format("{} {},{},{},{}", name_of(id), b, h, l, d)] = e.of(id).at(at++);
    };
    if (index_space(id) != IndexSpace::query_rows) {
      each_index(n, add);
      continue;
    }
    for (const RowIndex& row : e.rows) {
      for (std::int64_t d = 0; d < n[3]; ++d) add(row.b, row.h, row.i, d);
    }
  }
  return results;
}

TEST(ShrinkFile, AFileSaysTheGradientsThatItsLineSaid) {
  for (const char* line :
       {"pass=backward batch=2 heads=4/2 seq=5x7 dim=3/2 causal align=bottom-right mask=add:B1QK:neginf(0.3) softcap=2 "
        "sinks dlse out=dq,dk,dv,dmask,dsinks",
        "pass=both dtype=f16 heads=2 seq=4 dim=5 do.dtype=f32 dv.dtype=f32 out=o,lse,dq,dv",
        "pass=backward batch=2 heads=2 seq=3x7 dim=4 past=4 causal do.layout=blhd",
        "pass=both batch=2 heads=4/2 seq=2x9 dim=3 paged=4 lengths=5,9 causal align=bottom-right dlse",
        "pass=backward batch=3 heads=2 seq=5x6 dim=3 layout=thd lengths=q:5,1,3/k:6,2,3 causal align=bottom-right dlse",
        "pass=backward heads=2 seq=4x6 dim=3 dropout=0.4 seed=8"}) {
    const std::map<std::string, double> before = results_of(case_from_line(line)), after = results_of(as_file(line));
    ASSERT_FALSE(before.empty()) << line;
    for (const auto& [element, value] : before) EXPECT_EQ(value, after.at(element)) << line << ": " << element;
  }
}

TEST(ShrinkFile, AFileOfGradientsBecomesSmall) {
  const auto small = [](const std::string& line, const std::function<bool(const Case&)>& fails) {
    const ShrunkFile shrunk = shrink_file(*plain_file(case_from_line(line)), fails, [] { return true; });
    return print_case(case_from_tensors(shrunk.file, "small").problem);
  };
  const std::string line = "pass=backward batch=2 heads=4 seq=5x7 dim=3 softcap=2 dlse out=dq,dv";
  EXPECT_EQ(small(line, [](const Case& one) { return one.problem.call.wants_gradients(); }),
            "pass=backward seq=1 dim=1 out=dv");
  EXPECT_EQ(small(line, [](const Case& one) { return one.problem.call.dlse; }),
            "pass=backward seq=1 dim=1 dlse out=dv");
  EXPECT_EQ(small(line, [](const Case&) { return true; }), "seq=1 dim=1");
}

TEST(ShrinkFile, CachesAndDecisionsGoWhenTheyDontMatter) {
  const auto plain =
      plain_file(case_from_line("batch=2 heads=2 seq=4x9 dim=3 past=5 mask=bool:BHQK:random(0.7) dropout=0.3 seed=4"));
  // "Fails" while some past value is negative: one past key is left, and what new keys a case must have.
  const auto fails = [](const Case& one) {
    const ConstTensor v = one.inputs->views().past_v();
    bool negative = false;
    if (v.data) {
      each_index(v.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        negative |= load(v.data, v.dtype, v.offset(b, h, l, d)) < 0;
      });
    }
    return negative;
  };
  EXPECT_EQ(print_case(case_from_tensors(shrink_file(*plain, fails, [] { return true; }).file, "small").problem),
            "seq=1x2 dim=1 past=1");
  const ShrunkFile without = shrink_file(
      *plain, [](const Case&) { return true; }, [] { return true; });
  EXPECT_EQ(print_case(case_from_tensors(without.file, "small").problem), "seq=1 dim=1");
  EXPECT_FALSE(without.file.tensors.contains("past_k") || without.file.tensors.contains("keep"));
}

TEST(ShrinkFile, CountsOfCachedKeysFollowTheRowsThatAreLeft) {
  const auto plain = plain_file(case_from_line("batch=3 heads=2 seq=4x40 dim=3 past=9,32,0 causal paged=16"));
  const auto small = [&](const std::function<bool(const Case&)>& fails) {
    return print_case(case_from_tensors(shrink_file(*plain, fails, [] { return true; }).file, "small").problem);
  };
  EXPECT_EQ(small([](const Case& one) { return one.problem.call.past > 2; }), "seq=1x4 dim=1 past=3");
  EXPECT_EQ(small([](const Case& one) {
              return one.problem.call.past > 2 && one.problem.call.past_length(0) < one.problem.call.past;
            }),
            "batch=2 seq=1x4 dim=1 past=0,3");
}

TEST(ShrinkFile, KeepsWhatMattersAndNothingElse) {
  // "Fails" while some value of v is 2 or more in a problem of two keys or more with a window.
  const auto fails = [](const Case& one) {
    const Call& p = one.problem.call;
    const Inputs inputs = one.inputs->views();
    bool large = false;
    each_index(inputs.v().shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      large |= load(inputs.v().data, inputs.v().dtype, inputs.v().offset(b, h, l, d)) >= 2;
    });
    return large && p.key_length > 1 && p.window_left != Call::kUnbounded;
  };
  const auto plain = plain_file(case_from_line(
      "batch=3 heads=6/2 seq=9x17 dim=8/12 causal align=bottom-right window=3:1 mask=add:BHQK:normal softcap=9"));
  const ShrunkFile shrunk = shrink_file(*plain, fails, [] { return true; });
  EXPECT_TRUE(shrunk.finished);
  const Case small = case_from_tensors(shrunk.file, "small");
  EXPECT_EQ(print_case(small.problem), "heads=3/1 seq=1x2 dim=1 align=top-left window=0:inf");
  EXPECT_EQ(shrunk.file.tensors.at("q").at(0), 0);
  const FileTensor& v = shrunk.file.tensors.at("v");
  EXPECT_EQ(std::max(v.at(0), v.at(1)), 2);
}

TEST(ShrinkFile, WrongBackendsEndInSmallFilesThatRepeat) {
  const std::vector<Case> sources = {
      as_file("batch=2 heads=4/2 seq=9x35 dim=6/5 causal align=bottom-right window=9:0 softcap=3 lengths=35,20 seed=5"),
      as_file("heads=6/2 seq=7x11 dim=5 mask=add:1HQK:neginf(0.4) alibi=1,2,3,4,5,6 align=top-left sinks out=o,lse"),
      as_file("batch=2 seq=6x9 dim=4 mask=bool:B1QK:random(0.5) scale=-2 out=o,lse,weights,raw"),
      as_file("pass=backward heads=4/2 seq=6x9 dim=4/3 mask=add:1HQ1:normal softcap=3 sinks dlse "
              "out=dq,dk,dv,dmask,dsinks")};
  int count = 0;
  for (const auto& registry : {faulty::faulty_backends(), faulty::tampered_backends()}) {
    for (const BackendEntry& entry : registry) {
      const auto backend = entry.make({1, ""});
      const auto fails = [&](const Case& one) { return check_line(one, *backend, 1).status == Status::fail; };
      const auto source = std::find_if(sources.begin(), sources.end(), [&](const Case& one) {
        return !backend->refuse(one.problem) && fails(one) && fails(one) && fails(one);
      });
      if (source == sources.end()) continue;
      ++count;
      const auto plain = plain_file(*source);
      int left = 4000;
      const ShrunkFile small = shrink_file(*plain, fails, [&] { return left-- > 0; });
      EXPECT_TRUE(small.finished) << entry.name;
      const Case result = case_from_tensors(small.file, "small");
      EXPECT_TRUE(fails(result)) << entry.name;
      EXPECT_LE(result.problem.call.query_length, 4) << entry.name << " " << print_case(result.problem);
      // One mistake is in the second tile of 32 keys.
      EXPECT_LE(result.problem.call.key_length, 33) << entry.name << " " << print_case(result.problem);
      EXPECT_LE(result.problem.call.batch, 2) << entry.name;
      const std::string path = testing::TempDir() + "/attest_small.safetensors";
      write_safetensors(path, small.file);
      EXPECT_EQ(read_safetensors(path).metadata, small.file.metadata);
      EXPECT_TRUE(fails(case_from_file(path))) << entry.name;
      const ShrunkFile again = shrink_file(*plain, fails, [] { return true; });
      EXPECT_EQ(again.tried, small.tried) << entry.name;
      EXPECT_EQ(again.file.metadata, small.file.metadata) << entry.name;
      for (const auto& [name, tensor] : small.file.tensors) {
        EXPECT_EQ(again.file.tensors.at(name).bytes, tensor.bytes) << entry.name << " " << name;
      }
    }
  }
  EXPECT_GE(count, 15);
}

}  // namespace
}  // namespace attest

// Values that lie in the keys, and keys that are listed by number: what the definition says, and what is refused.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/cases/case_file.h"
#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"
#include "reference/softmax/attention.h"
#include "tests/unit/complaint.h"
#include "tests/unit/file_writer.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::string complaint_of(const std::string& line) {
  try {
    parse_case(line);
  } catch (const CaseError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::vector<double>> outputs_of(const Problem& problem, const Inputs& inputs) {
  std::vector<std::vector<double>> rows;
  for (const Row& row : attention(problem, inputs).rows) rows.push_back(row.output);
  return rows;
}

TEST(Latent, ValuesAreTheFirstColumnsOfTheKeys) {
  for (const std::string line : {"batch=2 heads=4/2 seq=3x5 dim=6/4 latent", "seq=3x9 dim=6/4 latent causal past=6",
                                 "batch=2 seq=2x9 dim=6/4 latent paged=4 lengths=9,3",
                                 "batch=2 seq=3x5 dim=6/4 latent lengths=q:3,1/k:5,2 layout=thd"}) {
    const Problem problem = parse_case(line);
    const CaseInputs made = make_inputs(problem);
    EXPECT_FALSE(made.has(TensorId::v)) << line;
    const Inputs views = made.views();
    EXPECT_EQ(views.v().data, views.k().data) << line;
    EXPECT_EQ(views.v().shape[3], 4) << line;
    // The same numbers as a tensor of their own.
    Problem apart = problem;
    apart.call.latent = false;
    CaseInputs copied = make_inputs(apart);
    Inputs own = views;
    for (const TensorId id : {TensorId::v, TensorId::past_v}) {
      if (!views.at(id).data) continue;
      TensorStorage& storage = copied.at(id);
      each_index(storage.shape(), [&](auto b, auto h, auto l, auto d) {
        if (l >= storage.place().rows(b)) return;
        storage.set(b, h, l, d, load(views.at(id).data, views.at(id).dtype, views.at(id).offset(b, h, l, d)));
      });
      own.set(id, copied.views().at(id));
    }
    EXPECT_EQ(outputs_of(problem, views), outputs_of(apart, own)) << line;
  }
}

TEST(Latent, PartsApartAreTheColumnsOfTheSameRows) {
  for (const std::string line :
       {"batch=2 heads=4/2 seq=3x5 dim=6/4 latent", "batch=2 heads=4/1 seq=2x9 dim=7/4 latent layout=blhd",
        "batch=2 heads=2/1 seq=2x9 dim=6/5 latent paged=4 lengths=9,3 poison=hidden:k",
        "batch=2 seq=3x5 dim=6/4 latent lengths=q:3,1/k:5,2 layout=thd"}) {
    const Problem joined = parse_case(line), apart = parse_case(line + " latent.parts=apart");
    const CaseInputs whole = make_inputs(joined), parts = make_inputs(apart);
    EXPECT_EQ(stored_shape(apart, TensorId::k)[3], apart.call.value_dim) << line;
    EXPECT_EQ(stored_shape(apart, TensorId::k_rope)[3], apart.call.key_dim - apart.call.value_dim) << line;
    EXPECT_EQ(parts.views().v().data, parts.views().k().data) << line;
    EXPECT_EQ(outputs_of(apart, parts.views()), outputs_of(joined, whole.views())) << line;
    const double last = load_query(apart, parts.views(), 1, 0, 0, apart.call.key_dim - 1);
    EXPECT_EQ(last,
              load(parts.views().at(TensorId::q_rope).data, DType::f32,
                   parts.views().at(TensorId::q_rope).offset(1, 0, 0, apart.call.key_dim - apart.call.value_dim - 1)));
    EXPECT_NE(last, 0);
  }
}

TEST(Latent, PartsApartComeFromFiles) {
  FileWriter file;
  file.add("q", {1, 1, 1, 2}, std::vector<float>{1, 2}).add("q_rope", {1, 1, 1, 1}, std::vector<float>{3});
  file.add("k", {1, 1, 2, 2}, std::vector<float>{1, 0, 0, 1}).add("k_rope", {1, 1, 2, 1}, std::vector<float>{10, 20});
  file.metadata("options", "latent latent.parts=apart");
  const Case source = case_from_file(file.write());
  EXPECT_EQ(source.problem.call.key_dim, 3);
  EXPECT_EQ(source.problem.call.value_dim, 2);
  const Inputs views = source.inputs->views();
  const Head head(source.problem, views, 0, 0);
  EXPECT_EQ(head.query_row(0), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(std::vector<double>(head.key_row(1), head.key_row(1) + 3), (std::vector<double>{0, 1, 20}));
  file.add("k_rope", {1, 1, 1, 1}, std::vector<float>{10});
  EXPECT_NE(complaint([&] { case_from_file(file.write()); }).find("k_rope [1,1,1,1] and k [1,1,2,2] disagree"),
            std::string::npos);
  FileWriter joined;
  joined.add("q", {1, 1, 1, 3}, std::vector<float>(3)).add("k", {1, 1, 2, 3}, std::vector<float>(6));
  joined.metadata("options", "latent latent.parts=apart").metadata("value_dim", "2");
  EXPECT_NE(complaint([&] { case_from_file(joined.write()); }).find("latent.parts=apart belongs to"),
            std::string::npos);
}

TEST(Latent, RefusesWhatHasNoMeaning) {
  EXPECT_NE(complaint_of("seq=8 dim=4 latent latent.parts=apart"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4/2 latent.parts=apart"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4/2 latent latent.parts=apart past=2"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4/2 latent latent.parts=apart rope=halves"), "");
  EXPECT_EQ(complaint_of("seq=8 dim=4/8 latent"),
            "latent: values are a part of the keys: Dv may not be larger than Dqk");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent v.dtype=f16"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent v.fill=huge"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent append"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent layout=kv"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent pass=both"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 latent causal poison=hidden:kv"), "");
  EXPECT_NE(complaint_of("op=linear seq=8 dim=4 latent"), "");
}

std::set<std::int64_t> seen_by(const Row& row) {
  std::set<std::int64_t> keys;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j]) keys.insert(static_cast<std::int64_t>(j));
  }
  return keys;
}

/// What each row of "batch=2 heads=2 seq=2x9" sees where the lists hold these numbers, and everything else shows it.
std::set<std::int64_t> seen_with(const std::string& options, const std::vector<std::int32_t>& list) {
  const Problem problem = parse_case("seq=2x9 dim=2 " + options + " select=" + std::to_string(list.size()));
  CaseInputs made = make_inputs(problem);
  TensorStorage& lists = made.at(TensorId::indices);
  each_index(lists.shape(), [&](auto b, auto h, auto i, auto n) {
    lists.set(b, h, i, n, static_cast<double>(list[static_cast<std::size_t>(n)]));
  });
  return seen_by(attention(problem, made.views()).rows.at(1));
}

TEST(Select, AListNamesWhatIsSeen) {
  using Keys = std::set<std::int64_t>;
  EXPECT_EQ(seen_with("", {7, 2, -1, 5}), (Keys{2, 5, 7}));
  EXPECT_EQ(seen_with("", {3, 3, 3}), Keys{3}) << "a key that is named three times counts once";
  EXPECT_EQ(seen_with("", {-1, -1}), Keys{});
  EXPECT_EQ(seen_with("causal align=bottom-right window=3:0", {8, 2, 5, 7}), (Keys{5, 7, 8}));
  EXPECT_EQ(seen_with("causal align=top-left", {8, 2, 1}), Keys{1});
}

TEST(Select, BlocksAndSharedLists) {
  const Problem problem = parse_case("batch=2 heads=4/2 seq=3x10 dim=2 lengths=10,5 select=2x4:shared");
  const CaseInputs made = make_inputs(problem);
  const Inputs views = made.views();
  EXPECT_EQ(made.at(TensorId::indices).shape(), (Index4{2, 1, 3, 2}));
  const auto lists = views.indices()->as<const std::int32_t>();
  const std::vector<Row> rows = attention(problem, views).rows;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t i = 0; i < 3; ++i) {
        std::set<std::int64_t> wanted;
        for (std::int64_t n = 0; n < 2; ++n) {
          const std::int64_t number = lists(b, h / 2, i, n);
          EXPECT_TRUE(number >= 0 && number < (b == 0 ? 3 : 2)) << "numbers of keys that the sequence has";
          for (std::int64_t j = 4 * number; j < std::min<std::int64_t>(4 * number + 4, b == 0 ? 10 : 5); ++j)
            wanted.insert(j);
        }
        EXPECT_EQ(seen_by(rows.at(static_cast<std::size_t>((b * 4 + h) * 3 + i))), wanted);
      }
    }
  }
}

TEST(Select, FillsAreWhatTheySay) {
  const auto entries = [](const std::string& text, std::int64_t keys) {
    const Problem problem = parse_case("heads=2 seq=50x" + std::to_string(keys) + " dim=1 select=" + text);
    const CaseInputs made = make_inputs(problem);
    const auto lists = made.views().indices()->as<const std::int32_t>();
    std::vector<std::vector<std::int32_t>> all;
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 50; ++i) {
        all.emplace_back();
        for (std::int64_t n = 0; n < lists.shape[3]; ++n) all.back().push_back(lists(0, h, i, n));
      }
    }
    return all;
  };
  std::int64_t empty = 0, repeated = 0;
  for (const auto& list : entries("6", 20)) EXPECT_EQ(std::set(list.begin(), list.end()).size(), 6);
  for (const auto& list : entries("6", 4)) EXPECT_EQ(std::set(list.begin(), list.end()).size(), 5) << "4 keys and -1";
  for (const auto& list : entries("6:random(0.5)", 20)) empty += std::ranges::count(list, -1);
  EXPECT_TRUE(empty > 200 && empty < 400) << empty;
  for (const auto& list : entries("6:repeated(0.5)", 20))
    repeated += std::set(list.begin(), list.end()).size() < 6 ? 1 : 0;
  EXPECT_GT(repeated, 50);
  for (const auto& list : entries("6:after(2)", 20)) {
    EXPECT_TRUE(list[0] >= 0 && list[1] >= 0);
    EXPECT_EQ(std::ranges::count(list, -1), 4);
  }
}

TEST(Select, RefusesWhatHasNoMeaning) {
  EXPECT_NE(complaint_of("seq=8 dim=4 select=0"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 select=2x0"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 select=2:often"), "");
  EXPECT_NE(complaint_of("seq=8 dim=4 select=2 pass=both"), "");
  EXPECT_EQ(print_case(parse_case("seq=8 dim=4 select=2x3:shared:random(0.5)")),
            "seq=8 dim=4 select=2x3:shared:random(0.5)");
}

}  // namespace
}  // namespace attest

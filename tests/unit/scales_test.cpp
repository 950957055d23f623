// Scales of queries, keys and values that are stored in 8 and 4 bits: which number belongs to which, what a bound says
// of them, and what is refused.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "harness/cases/case_file.h"
#include "harness/comparison/expectation.h"
#include "reference/options/find_fault.h"
#include "reference/softmax/key_place.h"
#include "tests/unit/complaint.h"
#include "tests/unit/file_writer.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Sets element (b, h, l, d) to what `of` says, wherever it is stored.
template <class Of>
void set_all(CaseInputs& inputs, TensorId id, const Of& of) {
  TensorStorage& storage = inputs.at(id);
  each_index(storage.shape(), [&](auto b, auto h, auto l, auto d) {
    if (l < storage.place().rows(b)) storage.set(b, h, l, d, static_cast<double>(of(b, h, l, d)));
  });
}

std::vector<double> key(const Head& head, std::int64_t j, std::int64_t count) {
  return {head.key_row(j), head.key_row(j) + count};
}

TEST(StoredScales, BelongToATensorAHeadARowOrABlock) {
  // Codes are 1; scales are 2^-1 of the first head and 2 of the second, times their row + 1, plus 8 per block.
  const auto code = [](auto...) { return 1; };
  const auto scale = [](auto, auto h, auto l, auto d) {
    return (h == 0 ? 0.5 : 2) * static_cast<double>(l + 1) + 8 * static_cast<double>(d);
  };
  struct Kind {
    std::string text;
    std::vector<double> of_key_1;  // of the second head
  };
  for (const Kind& kind :
       {Kind{"tensor", {0.5, 0.5, 0.5, 0.5, 0.5}}, Kind{"head", {2, 2, 2, 2, 2}}, Kind{"token", {4, 4, 4, 4, 4}},
        Kind{"block:2", {4, 4, 12, 12, 20}}, Kind{"block:9", {4, 4, 4, 4, 4}}, Kind{"block:1", {4, 12, 20, 28, 36}}}) {
    const Problem p = parse_case("heads=2 seq=2x3 dim=5 q.dtype=i8 k.dtype=i8 v.dtype=i8 q.scale=" + kind.text +
                                 " k.scale=" + kind.text + " v.scale=" + kind.text);
    CaseInputs made = make_inputs(p);
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) set_all(made, id, code);
    for (const TensorId id : {TensorId::q_scales, TensorId::k_scales, TensorId::v_scales}) set_all(made, id, scale);
    const Inputs inputs = made.views();
    const Head head(p, inputs, 0, 1);
    EXPECT_EQ(head.query_row(1), kind.of_key_1) << kind.text;
    EXPECT_EQ(key(head, 1, 5), kind.of_key_1) << kind.text;
    EXPECT_EQ(std::vector<double>(head.value_row(1), head.value_row(1) + 5), kind.of_key_1) << kind.text;
  }
}

TEST(StoredScales, OfCachedKeysComeFirst) {
  const Problem p = parse_case("batch=2 seq=1x5 dim=2 past=3,1 k.dtype=i8 v.dtype=e4m3 k.scale=token v.scale=block:1");
  CaseInputs made = make_inputs(p);
  for (const TensorId id : {TensorId::k, TensorId::past_k, TensorId::v, TensorId::past_v})
    set_all(made, id, [](auto...) { return 2; });
  const auto numbered = [](auto b, auto, auto l, auto d) {
    return static_cast<double>(16 * b + l) + static_cast<double>(d) / 2;
  };
  set_all(made, TensorId::k_scales, numbered);
  set_all(made, TensorId::v_scales, numbered);
  const Inputs inputs = made.views();
  const Head first(p, inputs, 0, 0), second(p, inputs, 1, 0);
  EXPECT_EQ(key(first, 2, 2), (std::vector<double>{4, 4}));
  EXPECT_EQ(key(first, 3, 2), (std::vector<double>{6, 6})) << "the first new one";
  EXPECT_EQ(key(second, 1, 2), (std::vector<double>{34, 34})) << "of a sequence with one cached key the first new one";
  EXPECT_EQ(second.value_row(1)[1], 35);
}

TEST(StoredScales, OfPagesLieBesideTheirRows) {
  for (const std::string share : {"token", "block:3", "head"}) {
    const std::string line =
        "batch=2 heads=4/2 seq=2x11 dim=8/5 k.dtype=e5m2 v.dtype=i8 lengths=11,6 k.scale=" + share +
        " v.scale=" + share;
    const Problem paged = parse_case(line + " paged=4"), whole = parse_case(line);
    const CaseInputs in_pages = make_inputs(paged);
    CaseInputs copied = make_inputs(whole);
    const Inputs views = in_pages.views();
    for (const auto& [of, scales] : {std::pair{TensorId::k, TensorId::k_scales}, {TensorId::v, TensorId::v_scales}}) {
      for (const TensorId id : {of, scales}) {
        const ConstTensor from = views.at(id);
        const bool is_beside = id == of || share != "head";
        each_index(stored_shape(whole, id), [&](auto b, auto h, auto l, auto d) {
          if (is_beside && l >= whole.call.key_count(b)) return;
          const std::int64_t page = is_beside ? views.page(b, l / 4) : 0;
          copied.at(id).set(b, h, l, d, load(from.data, from.dtype, from.offset(page, h, is_beside ? l % 4 : 0, d)));
        });
      }
    }
    std::vector<std::vector<double>> outputs[2];
    for (const Row& row : attention(paged, views).rows) outputs[0].push_back(row.output);
    const Inputs others = copied.views();
    for (const Row& row : attention(whole, others).rows) outputs[1].push_back(row.output);
    EXPECT_EQ(outputs[0], outputs[1]) << share;
  }
}

TEST(StoredScales, OfLatentKeysAreTheValuesToo) {
  const Problem p = parse_case("seq=1x2 dim=4/3 latent latent.parts=apart k.dtype=i8 k.scale=block:2");
  CaseInputs made = make_inputs(p);
  set_all(made, TensorId::k, [](auto, auto, auto l, auto d) { return 1 + l + 10 * d; });
  set_all(made, TensorId::k_rope, [](auto...) { return 7; });
  set_all(made, TensorId::k_scales, [](auto, auto, auto, auto n) { return n == 0 ? 2 : 0.5; });
  const Inputs inputs = made.views();
  const Head head(p, inputs, 0, 0);
  EXPECT_EQ(made.at(TensorId::k_scales).shape(), (Index4{1, 1, 2, 2}));
  EXPECT_EQ(key(head, 1, 4), (std::vector<double>{4, 24, 11, 7})) << "the rotated part has no scale";
  EXPECT_EQ(std::vector<double>(head.value_row(1), head.value_row(1) + 3), (std::vector<double>{4, 24, 11}));
}

TEST(StoredScales, ANaNMakesItsRowsNaN) {
  const Problem p =
      parse_case("seq=2x3 dim=2 causal align=top-left k.dtype=e4m3 v.dtype=e4m3 k.scale=token v.scale=token");
  CaseInputs made = make_inputs(p);
  made.at(TensorId::k_scales).set(0, 0, 1, 0, kNaN);
  const Inputs inputs = made.views();
  const Expectation expected = expect(p, inputs, {{Arithmetic{}, {}}}, 1);
  EXPECT_FALSE(std::isnan(expected.of(TensorId::out)[0])) << "of a query that doesn't see it";
  EXPECT_TRUE(std::isnan(expected.of(TensorId::out)[2]));
  EXPECT_EQ(expected.bounds.front().of(TensorId::out)[2], 0) << "and nothing else";
}

TEST(StoredScales, OfEachTypeAreReadExactly) {
  for (const std::string type : {"f32", "f16", "bf16", "e4m3", "e8m0"}) {
    const Problem p = parse_case("seq=1x2 dim=4 k.dtype=e2m1 k.scale=block:2 k_scales.dtype=" + type);
    CaseInputs made = make_inputs(p);
    set_all(made, TensorId::k, [](auto, auto, auto, auto d) { return d == 0 ? -6 : 1.5; });
    set_all(made, TensorId::k_scales, [&](auto, auto, auto l, auto n) {
      return type == "e8m0" ? std::exp2(3 * l - 5 * n)
                            : 0.8125 + 0.125 * static_cast<double>(l) + 0.3125 * static_cast<double>(n);
    });
    const Inputs inputs = made.views();
    const Head head(p, inputs, 0, 0);
    const std::vector<double> wanted = type == "e8m0" ? std::vector<double>{-48, 12, 0.375, 0.375}
                                                      : std::vector<double>{-5.625, 1.40625, 1.875, 1.875};
    EXPECT_EQ(key(head, 1, 4), wanted) << type;
  }
}

TEST(StoredScales, ANaNOfPowersMakesItsBlockNaN) {
  const Problem p = parse_case("seq=1 dim=1/6 v.dtype=i4 v.scale=block:2 v_scales.dtype=e8m0");
  CaseInputs made = make_inputs(p);
  set_all(made, TensorId::v, [](auto...) { return 1; });
  set_all(made, TensorId::v_scales, [](auto, auto, auto, auto n) { return std::exp2(n); });
  made.at(TensorId::v_scales).memory().data()[1] = std::byte{0xff};
  const Inputs inputs = made.views();
  const std::vector<double> got = expect(p, inputs, {{Arithmetic{}, {}}}, 1).of(TensorId::out);
  EXPECT_EQ(got[1], 1);
  EXPECT_TRUE(std::isnan(got[2]) && std::isnan(got[3]));
  EXPECT_EQ(got[4], 4);
}

/// Bounds of the raw scores of a call.
std::vector<double> raw_bounds(const Problem& p, const Inputs& inputs) {
  return expect(p, inputs, {{Arithmetic{}, {}}}, 1, kInfinity).bounds.front().of(TensorId::raw);
}

TEST(ScaleBound, IsThatOfTheNumbersWithOneRoundingMoreOfEach) {
  const Problem scaled = parse_case("seq=2x3 dim=6 q.dtype=e4m3 k.dtype=e4m3 q.scale=tensor k.scale=token out=raw"),
                plain = parse_case("seq=2x3 dim=6 out=raw");
  CaseInputs made = make_inputs(scaled), numbers = make_inputs(plain);
  made.at(TensorId::q_scales).set(0, 0, 0, 0, 1);
  set_all(made, TensorId::k_scales, [](auto, auto, auto l, auto) { return l == 0 ? 0.5 : 1; });
  const Inputs views = made.views();
  const Head head(scaled, views, 0, 0);
  set_all(numbers, TensorId::q, [&](auto, auto, auto i, auto d) { return head.query_row(i)[d]; });
  set_all(numbers, TensorId::k, [&](auto, auto, auto j, auto d) { return head.key_row(j)[d]; });
  const std::vector<double> with = raw_bounds(scaled, views), without = raw_bounds(plain, numbers.views());
  for (std::size_t n = 0; n < with.size(); ++n) {
    // 6 products are added, and the scale is rounded and multiplied in: 8 roundings of each, or 10.
    EXPECT_NEAR(with[n] / without[n], 10.0 / 8, 1e-5) << n;
  }
}

TEST(ScaleBound, ProvesNothingWhereANumberMayLeaveTheRange) {
  const Problem p = parse_case("seq=1x2 dim=2 v.dtype=i8 v.scale=token");
  const auto bound_with = [&](double scale, double code) {
    CaseInputs made = make_inputs(p);
    made.at(TensorId::v).set(0, 0, 1, 0, code);
    made.at(TensorId::v_scales).set(0, 0, 1, 0, scale);
    return expect(p, made.views(), {{Arithmetic{}, {}}}, 1, kInfinity).bounds.front().of(TensorId::out)[0];
  };
  EXPECT_LT(bound_with(0x1p50, 1), 0x1p50);
  EXPECT_EQ(bound_with(0x1p100, 1), kInfinity);
  EXPECT_EQ(bound_with(0x1p-100, 1), kInfinity);
  // A row of zeros may have no scale.
  CaseInputs made = make_inputs(p);
  set_all(made, TensorId::v, [](auto, auto, auto l, auto) { return l == 0 ? 3 : 0; });
  made.at(TensorId::v_scales).set(0, 0, 1, 0, 0);
  EXPECT_LT(expect(p, made.views(), {{Arithmetic{}, {}}}, 1, kInfinity).bounds.front().of(TensorId::out)[0], 1);
}

TEST(ScaleBound, OfAValueHasOneRoundingMore) {
  const Problem scaled = parse_case("seq=1x1 dim=1 v.dtype=i8 v.scale=tensor"), plain = parse_case("seq=1x1 dim=1");
  CaseInputs made = make_inputs(scaled), numbers = make_inputs(plain);
  made.at(TensorId::v).set(0, 0, 0, 0, 100);
  made.at(TensorId::v_scales).set(0, 0, 0, 0, 1);
  numbers.at(TensorId::v).set(0, 0, 0, 0, 100);
  const auto bound = [](const Problem& p, const CaseInputs& inputs) {
    return expect(p, inputs.views(), {{Arithmetic{}, {}}}, 1, kInfinity).bounds.front().of(TensorId::out)[0];
  };
  EXPECT_NEAR(bound(scaled, made) - bound(plain, numbers), 100 * 0x1p-24, 100 * 0x1p-30);
}

/// What a kernel in f32 makes of one query and one key of one feature, which multiplies each scale in by itself.
struct OneProduct {
  float query_code = 0, key_code = 0, query_scale = 0, key_scale = 0, scale = 0.7F;

  double rounded() const { return query_code * query_scale * (key_code * key_scale) * scale; }
  double exact(double given_scale) const {
    return static_cast<double>(query_code) * query_scale * (static_cast<double>(key_code) * key_scale) * given_scale;
  }
};

TEST(ScaleBound, HoldsAndIsReached) {
  // The one of many whose five roundings go in one direction.
  std::mt19937 random(1);
  OneProduct worst;
  double most = 0;
  for (int n = 0; n < 1000000; ++n) {
    OneProduct p;
    p.query_code = static_cast<float>(random() % 64 + 64), p.key_code = static_cast<float>(random() % 64 + 64);
    p.query_scale = static_cast<float>(random() % (1 << 24)) * 0x1p-24F + 0.25F;
    p.key_scale = static_cast<float>(random() % (1 << 24)) * 0x1p-24F + 0.25F;
    const double off = std::fabs(p.rounded() / p.exact(0.7) - 1);
    if (off <= most) continue;
    most = off;
    worst = p;
  }
  const Problem p = parse_case("seq=1x1 dim=1 q.dtype=i8 k.dtype=i8 q.scale=token k.scale=block:1 scale=0.7 out=raw");
  CaseInputs made = make_inputs(p);
  made.at(TensorId::q).set(0, 0, 0, 0, worst.query_code);
  made.at(TensorId::k).set(0, 0, 0, 0, worst.key_code);
  made.at(TensorId::q_scales).set(0, 0, 0, 0, worst.query_scale);
  made.at(TensorId::k_scales).set(0, 0, 0, 0, worst.key_scale);
  const Expectation expected = expect(p, made.views(), {{Arithmetic{}, {}}}, 1, kInfinity);
  const double share =
      std::fabs(worst.rounded() - expected.of(TensorId::raw)[0]) / expected.bounds.front().of(TensorId::raw)[0];
  EXPECT_LE(share, 1);
  EXPECT_GE(share, 0.65) << "more than the bound of one scale less";
}

/// A kernel may add codes in a sum of its own and scale what comes out.
Arithmetic sums_in_f16() {
  Arithmetic a;
  a.score_sum = a.value_sum = {.format = SumFormat::f16};
  return a;
}

TEST(ScaleBound, OfASumOfCodesGrowsByTheScaleBehindIt) {
  const Problem p = parse_case("seq=1x1 dim=4 k.dtype=i8 k.scale=tensor scale=1 out=raw");
  CaseInputs made = make_inputs(p);
  set_all(made, TensorId::q, [](auto...) { return 0x1p-30; });
  set_all(made, TensorId::k, [](auto...) { return 1; });
  made.at(TensorId::k_scales).set(0, 0, 0, 0, 256);
  const Expectation scores = expect(p, made.views(), {{sums_in_f16(), {}}}, 1, kInfinity);
  // 4 * 2^-30 is 0 in f16, and so is 256 times that.
  EXPECT_GE(scores.bounds.front().of(TensorId::raw)[0], 0x1p-20);
  EXPECT_LT(scores.bounds.front().of(TensorId::raw)[0], 0x1p-10);

  const Problem of_values = parse_case("seq=1x2 dim=1 v.dtype=i8 v.scale=tensor scale=1");
  CaseInputs light = make_inputs(of_values);
  light.at(TensorId::q).set(0, 0, 0, 0, 1);
  set_all(light, TensorId::k, [](auto, auto, auto l, auto) { return l == 0 ? 17.5 : 0; });
  set_all(light, TensorId::v, [](auto, auto, auto l, auto) { return l == 0 ? 0 : 1; });
  light.at(TensorId::v_scales).set(0, 0, 0, 0, 64);
  const Expectation outputs = expect(of_values, light.views(), {{sums_in_f16(), {}}}, 1, kInfinity);
  // exp(-17.5) is less than half the smallest number of f16.
  EXPECT_GE(outputs.bounds.front().of(TensorId::out)[0], 64 * std::exp(-17.5));
  EXPECT_LT(outputs.bounds.front().of(TensorId::out)[0], 0x1p-10);
}

TEST(ScaleBound, OfASumOfCodesProvesNothingWhereTheyLeaveItsRange) {
  const Problem p = parse_case("seq=1x1 dim=1 k.dtype=i8 k.scale=tensor scale=1 out=raw");
  const auto of_score = [&](double q) {
    CaseInputs made = make_inputs(p);
    made.at(TensorId::q).set(0, 0, 0, 0, q);
    made.at(TensorId::k).set(0, 0, 0, 0, 127);
    made.at(TensorId::k_scales).set(0, 0, 0, 0, 0x1p-10);
    return expect(p, made.views(), {{sums_in_f16(), {}}}, 1, kInfinity).bounds.front().of(TensorId::raw)[0];
  };
  EXPECT_LT(of_score(100), 1);
  EXPECT_EQ(of_score(600), kInfinity) << "600 * 127 is no number of f16, whatever a scale makes of it";
  const auto of_output = [](const std::string& keys) {
    const Problem of_values = parse_case("seq=1x" + keys + " dim=1 v.dtype=i8 v.scale=tensor k.fill=constant(0)");
    CaseInputs made = make_inputs(of_values);
    set_all(made, TensorId::v, [](auto...) { return 127; });
    made.at(TensorId::v_scales).set(0, 0, 0, 0, 0x1p-10);
    return expect(of_values, made.views(), {{sums_in_f16(), {}}}, 1, kInfinity).bounds.front().of(TensorId::out)[0];
  };
  EXPECT_LT(of_output("100"), 1);
  EXPECT_EQ(of_output("600"), kInfinity);
}

FileWriter codes(const std::string& options) {
  FileWriter file;
  file.add_bytes("q", "I8", {1, 2, 2, 3}, std::vector<std::int8_t>(12, 1));
  file.add_bytes("k", "I8", {1, 2, 3, 3}, std::vector<std::int8_t>(18, 2));
  file.add_bytes("v", "I8", {1, 2, 3, 3}, std::vector<std::int8_t>(18, 3));
  file.metadata("options", options);
  return file;
}

TEST(FilesOfScales, HaveThemAsTensors) {
  FileWriter file = codes("k.scale=block:2 v.scale=head");
  std::vector<float> numbers(12);
  for (std::size_t n = 0; n < 12; ++n) numbers[n] = static_cast<float>(n);
  file.add("k_scales", {1, 2, 3, 2}, numbers).add("v_scales", {1, 2, 1, 1}, std::vector<float>{10, 20});
  const Case source = case_from_file(file.write());
  const Inputs views = source.inputs->views();
  const Head head(source.problem, views, 0, 1);
  EXPECT_EQ(key(head, 1, 3), (std::vector<double>{16, 16, 18}));
  EXPECT_EQ(head.value_row(2)[0], 60);
  EXPECT_EQ(head.query_row(0), (std::vector<double>{1, 1, 1}));
}

TEST(FilesOfScales, HaveThemBesidePages) {
  FileWriter file;
  file.add("q", {1, 1, 1, 2}, std::vector<float>{1, 1});
  file.add_bytes("k", "I8", {3, 1, 2, 2}, std::vector<std::int8_t>{9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8});
  file.add_bytes("v", "I8", {3, 1, 2, 2}, std::vector<std::int8_t>(12, 1));
  file.add("page_table", {1, 2}, std::vector<std::int32_t>{2, 1});
  file.add("k_scales", {3, 1, 2, 1}, std::vector<float>{0, 0, 10, 20, 100, 200});
  file.metadata("options", "k.scale=token lengths=3");
  const Case source = case_from_file(file.write());
  const Inputs views = source.inputs->views();
  const Head head(source.problem, views, 0, 0);
  EXPECT_EQ(key(head, 1, 2), (std::vector<double>{1400, 1600}));
  EXPECT_EQ(key(head, 2, 2), (std::vector<double>{10, 20}));
}

TEST(FilesOfScales, AreChecked) {
  const auto complaint_of = [](const FileWriter& file) { return complaint([&] { case_from_file(file.write()); }); };
  EXPECT_NE(complaint_of(codes("k.scale=tensor")).find("tensor \"k_scales\" is missing; the options need it"),
            std::string::npos);
  FileWriter wrong = codes("k.scale=token");
  wrong.add("k_scales", {1, 2, 1, 1}, std::vector<float>{1, 1});
  EXPECT_NE(complaint_of(wrong).find("k_scales [1,2,1,1] of F32: [1,2,3,1] of a floating type is wanted"),
            std::string::npos)
      << complaint_of(wrong);
  FileWriter infinite = codes("q.scale=head");
  infinite.add("q_scales", {1, 2, 1, 1}, std::vector<float>{1, INFINITY});
  EXPECT_NE(complaint_of(infinite).find("q_scales[1] is inf: finite numbers are wanted"), std::string::npos)
      << complaint_of(infinite);
}

TEST(StoredScales, RefuseWhatHasNoMeaning) {
  const auto complaint_of = [](const std::string& line) {
    return complaint<CaseError>([&] { parse_case("seq=3 dim=4/2 " + line); });
  };
  EXPECT_EQ(complaint_of("q.dtype=i8 k.dtype=i8 v.dtype=i8 q.scale=token k.scale=head v.scale=block:3"), "");
  EXPECT_EQ(complaint_of("k.scale=head"),
            "k.scale: k is stored in f32, and scales belong to 8 or 4 bits; say k.dtype=e4m3, e5m2, i8, e2m1 or i4");
  EXPECT_NE(complaint_of("k.dtype=i8 past=2 past_k.dtype=f16 k.scale=head").find("past_k is stored in f16"),
            std::string::npos);
  for (const char* more : {"append", "out=present", "pass=backward out=dq", "rope=halves", "norm=1e-06"})
    EXPECT_NE(complaint_of(std::string("k.dtype=i8 k.scale=token ") + more), "") << more;
  EXPECT_NE(complaint_of("latent k.dtype=i8 v.scale=head").find("latent values have the scales of their keys"),
            std::string::npos);
  EXPECT_NE(complaint_of("k.dtype=i8 lengths=2 layout=thd k.scale=token").find("packed rows have no scales"),
            std::string::npos);
  for (const char* line : {"k.dtype=i8 k.scale=token k_scales.dtype=e5m2", "k.dtype=e8m0"})
    EXPECT_NE(complaint_of(line).find("is no type"), std::string::npos) << complaint_of(line);
  Problem p = parse_case("seq=3 dim=4 k.dtype=i8 k.scale=token");
  p.call.tensor(TensorId::k_scales).dtype = DType::e5m2;
  EXPECT_EQ(find_fault(p)->key, "k_scales.dtype");
  p.call.tensor(TensorId::k_scales).dtype = DType::e8m0;
  EXPECT_FALSE(find_fault(p));
  EXPECT_NE(complaint_of("k.dtype=i8 k.scale=block"), "");
  EXPECT_NE(complaint_of("k.dtype=i8 k.scale=token:2"), "");
}

}  // namespace
}  // namespace attest

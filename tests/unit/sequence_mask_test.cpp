// Trees of drafted tokens, spans and chunks: small masks as they are, and what holds for any.
#include "harness/cases/sequence_mask.h"

#include <set>
#include <string>

#include "harness/cases/inputs.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// A line's mask, row by row: 1 where it shows.
std::string rows_of(const std::string& line, std::int64_t b = 0, std::int64_t h = 0) {
  const Problem p = parse_case(line);
  const SequenceMask mask(p);
  std::string rows;
  for (std::int64_t i = 0; i < p.call.query_length; ++i) {
    if (i > 0) rows += ' ';
    for (std::int64_t j = 0; j < p.call.key_length; ++j) rows += mask.shows(b, h, i, j) ? '1' : '0';
  }
  return rows;
}

TEST(SequenceMask, ChunksAreCausalWithin) {
  EXPECT_EQ(rows_of("seq=5 dim=1 mask=bool:11QK:chunks(2)"), "10000 11000 00100 00110 00001");
  EXPECT_EQ(rows_of("seq=3x7 dim=1 mask=bool:11QK:chunks(4)"), "0000100 0000110 0000111");
  EXPECT_EQ(rows_of("seq=3x2 dim=1 mask=bool:11QK:chunks(8)"), "00 10 11") << "a query before the first key";
}

TEST(SequenceMask, OfABatchFollowsItsLengths) {
  const std::string line = "batch=2 seq=3x5 dim=1 lengths=q:3,2/k:5,3 mask=bool:";
  EXPECT_EQ(rows_of(line + "B1QK:chunks(2)", 0), "00100 00110 00001");
  EXPECT_EQ(rows_of(line + "B1QK:chunks(2)", 1), "11011 00111 11111") << "queries at keys 1 and 2 of 3";
  EXPECT_EQ(rows_of(line + "11QK:chunks(2)", 0), "00100 00110 00001");
  EXPECT_EQ(rows_of(line + "B1QK:tree(3)", 1).substr(0, 5), "11011") << "two drafted tokens behind a key";
  EXPECT_EQ(rows_of("batch=2 seq=2x4 dim=1 past=2,1 causal mask=bool:B1QK:chunks(2)", 1), "1101 0011");
}

TEST(SequenceMask, ATreeOfOneIsCausal) {
  EXPECT_EQ(rows_of("seq=3x5 dim=1 mask=bool:11QK:tree(1)"), "11100 11110 11111");
}

TEST(SequenceMask, ADrawnTree) {
  EXPECT_EQ(rows_of("seq=6x8 dim=1 mask=bool:11QK:tree(5) seed=3"),
            "11100000 11110000 11111000 11100100 11100010 11111001")
      << "behind a query and three keys; the parents of tokens 1 and 4 are 0 and 1";
}

/// Query i of a tree, behind `past` keys, sees the past, and itself with what its nearest visible token sees.
TEST(SequenceMask, ATokenSeesItsAncestorsAlone) {
  constexpr std::size_t kPast = 4, kTokens = 9;
  std::set<std::string> trees;
  for (int seed = 0; seed < 40; ++seed) {
    const std::string line = "batch=2 heads=2 seq=9x13 dim=1 mask=bool:BHQK:tree(9) seed=" + std::to_string(seed);
    for (const std::int64_t b : {0, 1}) {
      for (const std::int64_t h : {0, 1}) {
        const std::string rows = rows_of(line, b, h);
        trees.insert(rows);
        std::vector<std::string> seen;
        for (std::size_t t = 0; t < kTokens; ++t) {
          const std::string row = rows.substr(t * (kPast + kTokens + 1), kPast + kTokens);
          EXPECT_EQ(row.substr(0, kPast), "1111");
          seen.push_back(row.substr(kPast));
          const std::size_t parent = seen[t].substr(0, t).rfind('1');
          std::string expected = parent == std::string::npos ? std::string(kTokens, '0') : seen[parent];
          expected[t] = '1';
          EXPECT_EQ(seen[t], expected) << line;
        }
      }
    }
  }
  EXPECT_GT(trees.size(), 150u) << "of 160";
}

TEST(SequenceMask, DrawnSpans) {
  EXPECT_EQ(rows_of("seq=8 dim=1 mask=bool:11QK:spans(3) seed=1"),
            "10000000 11000000 11100000 11110000 11111110 11111110 11111110 11111111");
  EXPECT_EQ(rows_of("seq=4x8 dim=1 mask=bool:11QK:spans(3) seed=1"), "11111110 11111110 11111110 11111111")
      << "the last rows of those above";
}

/// Beyond the diagonal a span is seen whole, by each of its tokens and by nobody else.
TEST(SequenceMask, TokensOfASpanSeeEachOther) {
  constexpr std::size_t kLength = 40, kSpan = 5;
  std::size_t spans = 0;
  for (int seed = 0; seed < 20; ++seed) {
    const std::string line = "seq=40 dim=1 mask=bool:11QK:spans(5) seed=" + std::to_string(seed);
    const std::string rows = rows_of(line);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::string row = rows.substr(i * (kLength + 1), kLength);
      const std::size_t end = row.find('0') == std::string::npos ? kLength : row.find('0');
      EXPECT_EQ(row.find('1', end), std::string::npos) << "one run from the first key on";
      EXPECT_GT(end, i);
      EXPECT_LE(end, i + kSpan);
      if (i > 0 && ends.back() > i) {
        EXPECT_EQ(end, ends.back()) << "one span ends where it ends";
      }
      spans += end == i + kSpan;
      ends.push_back(end);
    }
  }
  EXPECT_GT(spans, 20u * 2);
  EXPECT_LT(spans, 20u * 6);
}

TEST(SequenceMask, AdditiveOnesHideByInfinity) {
  for (const char* fill : {"tree(3)", "spans(2)", "chunks(2)"}) {
    const std::string sizes = "batch=2 heads=2 seq=4x6 dim=1 lengths=q:4,2/k:6,3 seed=5 mask=";
    const CaseInputs added = make_inputs(parse_case(sizes + "add:BHQK:" + fill)),
                     flags = make_inputs(parse_case(sizes + "bool:BHQK:" + fill));
    const ConstTensor add = added.at(TensorId::mask).view(), flag = flags.at(TensorId::mask).view();
    std::size_t hidden = 0;
    each_index(add.shape, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const bool shown = load(flag.data, flag.dtype, flag.offset(b, h, i, j)) != 0;
      EXPECT_EQ(load(add.data, add.dtype, add.offset(b, h, i, j)), shown ? 0 : -kInfinity) << fill;
      hidden += !shown;
    });
    EXPECT_GT(hidden, 0u) << fill;
  }
}

std::size_t column_of_fault(const std::string& line) {
  try {
    parse_case(line);
  } catch (const CaseError& error) {
    return error.column();
  }
  return 0;
}

TEST(SequenceMask, WrongNumbersAreRefusedAtTheirColumn) {
  EXPECT_EQ(column_of_fault("seq=4x8 dim=1 mask=bool:11QK:tree(4)"), 0u);
  EXPECT_EQ(column_of_fault("seq=4x8 dim=1 mask=bool:11QK:tree(5)"), 15u);
  EXPECT_EQ(column_of_fault("seq=8x4 dim=1 mask=add:11QK:tree(5)"), 15u);
  for (const char* fill : {"tree(0)", "spans(1.5)", "chunks(-1)", "chunks(1e300)", "tree", "spans(1,2)"})
    EXPECT_GT(column_of_fault(std::string("seq=8 dim=1 mask=bool:11QK:") + fill), 14u) << fill;
  EXPECT_EQ(column_of_fault("seq=8 dim=1 blocks=2x2:tree(1)"), 24u) << "of blocks it would be no tree of tokens";
}

}  // namespace
}  // namespace attest

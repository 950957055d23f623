#include "harness/cases/random_case.h"

#include <algorithm>
#include <string>

#include "reference/case_line.h"
#include "reference/tensor_place.h"
#include "reference/work.h"

namespace attest {
namespace {

const std::vector<std::int64_t> kLengths = {0,  1,  2,  3,  5,   7,   13,  15,  16,  17,  31,  32,  33,  47,  48,  49,
                                            63, 64, 65, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257, 509, 512, 513};
const std::vector<std::int64_t> kDims = {1, 2, 3, 8, 15, 16, 17, 40, 64, 72, 80, 96, 128, 192, 256};

struct Heads {
  std::int64_t query, key;
};
const std::vector<Heads> kHeads = {{1, 1}, {2, 2}, {3, 3}, {4, 1}, {6, 2}, {8, 4}};

std::string fill_of(std::size_t n) {
  static const std::vector<std::string> fills = {"normal",  "uniform", "spread(8)",      "spread(88)", "spread(300)",
                                                 "ties",    "onehot",  "constant(0.25)", "denormal",   "huge",
                                                 "integer", "cancel",  "mixed"};
  return n == 0 ? "" : "fill=" + fills[n];
}

/// Sizes of a drawn shape, for tokens that must fit them.
struct Sizes {
  std::int64_t batch = 1, query_heads = 1, query_length = 0, key_length = 0;
};

std::string shape_tokens(Random& random, std::vector<int>& c, bool& square, Sizes& sizes) {
  const std::int64_t lq = random.pick(kLengths, c);
  square = random.below(3) == 0;
  const std::int64_t lk = square ? lq : random.pick(kLengths, c);
  if (square) c.push_back(-1);
  square = lq == lk;
  const std::int64_t dqk = random.pick(kDims, c), dv = random.below(3) != 0 ? dqk : kDims[random.below(kDims.size())];
  c.push_back(dqk == dv);
  const Heads heads = random.pick(kHeads, c);
  const std::int64_t batch = random.pick(std::vector<std::int64_t>{1, 1, 2, 3}, c);
  sizes = {batch, heads.query, lq, lk};
  const auto pair = [](std::int64_t a, std::int64_t b, const char* s) {
    return a == b ? std::to_string(a) : std::to_string(a) + s + std::to_string(b);
  };
  return "batch=" + std::to_string(batch) + " heads=" + pair(heads.query, heads.key, "/") +
         " seq=" + pair(lq, lk, "x") + " dim=" + pair(dqk, dv, "/");
}

/// `parts` numbers of at least 0 that add up to `total`.
std::vector<std::int64_t> split(Random& random, std::int64_t total, std::size_t parts) {
  std::vector<std::int64_t> list;
  for (std::size_t n = 1; n < parts; ++n) {
    const auto part = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(total) + 1));
    list.push_back(part);
    total -= part;
  }
  list.push_back(total);
  return list;
}

std::string joined(const std::vector<std::int64_t>& list) {
  std::string text;
  for (std::int64_t n : list) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

/// Lengths, segments, prefix and blocks. `packed` and `cached` say what the layout and the cache need.
std::string extent_tokens(Random& random, std::vector<int>& c, const Sizes& n, bool packed, bool cached) {
  std::string text;
  const int lengths = packed ? 2 : random.pick(std::vector<int>{0, 0, 0, 1, 2}, c);  // none, keys, both
  const auto draw = [&](std::int64_t most) {
    std::vector<std::int64_t> list;
    for (std::int64_t b = 0; b < n.batch; ++b) {
      // The whole length now and then, and none at all.
      const std::size_t kind = random.below(5);
      list.push_back(kind == 0   ? most
                     : kind == 1 ? 0
                                 : static_cast<std::int64_t>(random.below(static_cast<std::size_t>(most) + 1)));
    }
    return list;
  };
  if (lengths == 1) text += " lengths=" + joined(draw(n.key_length));
  if (lengths == 2) {
    const std::string queries = joined(draw(n.query_length));
    text += " lengths=q:" + queries + "/k:" + joined(draw(n.key_length));
  }
  const int segments = cached ? 0 : random.pick(std::vector<int>{0, 0, 0, 0, 2, 3}, c);
  if (segments > 0) {
    const auto count = static_cast<std::size_t>(segments);
    const std::string queries = joined(split(random, n.query_length, count));
    text += " segments=q:" + queries + "/k:" + joined(split(random, n.key_length, count));
  }
  const auto prefix =
      std::min<std::int64_t>(random.pick(std::vector<std::int64_t>{0, 0, 0, 0, 1, 5, 40}, c), n.key_length);
  if (prefix > 0) text += " prefix=" + std::to_string(prefix);
  text +=
      random.pick(std::vector<std::string>{"", "", "", "", "", " blocks=16x16:random(0.5)", " blocks=7x33:random(0.3)",
                                           " blocks=64x128:random(0.7)", " blocks=32x16:blocks(2)"},
                  c);
  return text;
}

/// What is done to scores and weights.
std::string score_tokens(Random& random, std::vector<int>& c, const Sizes& n) {
  std::string text =
      random.pick(std::vector<std::string>{"", "", "", "", " softcap=1.5", " softcap=20", " softcap=1000"}, c);
  const int alibi = random.pick(std::vector<int>{0, 0, 0, 0, 1, 2}, c);
  if (alibi == 1) text += " alibi";
  if (alibi == 2) {
    text += " alibi=";
    for (std::int64_t h = 0; h < n.query_heads; ++h) text += (h ? "," : "") + std::string(h % 2 ? "-0.1" : "0.75");
  }
  const int sinks = random.pick(std::vector<int>{0, 0, 0, 0, 1, 2}, c);
  if (sinks == 1) text += " sinks";
  if (sinks == 2) {
    text += " sinks=";
    for (std::int64_t h = 0; h < n.query_heads; ++h) text += (h ? "," : "") + std::string(h % 2 ? "30" : "-2.5");
  }
  return text +
         random.pick(std::vector<std::string>{"", "", "", "", "", " dropout=0.1", " dropout=0.5", " dropout=0.95"}, c);
}

std::string visibility_tokens(Random& random, std::vector<int>& c, bool square, bool diagonal_given, bool uses_alibi) {
  std::string text;
  const int kind = random.pick(std::vector<int>{0, 0, 1, 2, 3}, c);  // none, causal, window, both
  if (kind & 1) text += " causal";
  if (kind & 2) {
    const std::vector<std::string> sides = {"0", "1", "7", "15", "64", "127", "inf"};
    text += " window=" + random.pick(sides, c) + ":" + random.pick(sides, c);
  } else {
    c.insert(c.end(), {-1, -1});
  }
  const bool bottom = random.pick(std::vector<int>{0, 1}, c) == 1;
  const bool used = kind != 0 || uses_alibi;
  if (diagonal_given) return text;
  if (used && !square)
    text += bottom ? " align=bottom-right" : " align=top-left";
  else if (bottom && used)
    text += " align=bottom-right";
  return text;
}

std::string mask_tokens(Random& random, std::vector<int>& c) {
  const std::vector<std::string> fills = {"",
                                          "",
                                          "bool:random(0.5)",
                                          "bool:random(0.05)",
                                          "bool:band(3)",
                                          "bool:band(40)",
                                          "bool:blocks(16)",
                                          "bool:rows(0.4)",
                                          "bool:all",
                                          "bool:none",
                                          "add:normal",
                                          "add:neginf(0.3)",
                                          "add:neginf(0.97)",
                                          "add:finitemin(0.5)",
                                          "add:band(20)",
                                          "add:large"};
  const std::string fill = random.pick(fills, c);
  const std::size_t pattern = random.below(16);
  if (fill.empty()) {
    c.push_back(-1);
    return "";
  }
  c.push_back(static_cast<int>(pattern));
  std::string axes = "BHQK";
  for (std::size_t n = 0; n < 4; ++n) {
    if (!(pattern >> n & 1)) axes[n] = '1';
  }
  const std::size_t colon = fill.find(':');
  return " mask=" + fill.substr(0, colon) + ":" + axes + fill.substr(colon);
}

std::string layout_tokens(Random& random, std::vector<int>& c) {
  const std::vector<std::string> layouts = {"",
                                            "",
                                            "",
                                            " layout=blhd",
                                            " layout=bld",
                                            " q.layout=blhd",
                                            " k.layout=blhd v.layout=bld",
                                            " out.layout=blhd",
                                            " layout=kv"};
  std::string text = random.pick(layouts, c);
  const std::vector<std::string> offsets = {"", "", "", " q.offset=3", " k.offset=1 v.offset=5", " out.offset=7"};
  return text + random.pick(offsets, c);
}

/// Strides of one tensor: padded rows, a broadcast axis, features far apart.
std::string stride_tokens(const Problem& p, Random& random, std::vector<int>& c) {
  const int kind = random.pick(std::vector<int>{0, 0, 0, 1, 2, 3, 4, 5}, c);
  const std::vector<TensorId> ids = {TensorId::q, TensorId::k, TensorId::v, TensorId::out};
  const TensorId id = random.pick(ids, c);
  if (kind == 0) return "";
  const Index4 n = place_of(p, id).shape;
  Index4 s = {n[1] * n[2] * (n[3] + 3), n[2] * (n[3] + 3), n[3] + 3, 1};      // 1: rows with a gap
  if (kind == 2) s = {n[1] * n[2] * n[3] * 2, n[2] * n[3] * 2, n[3] * 2, 2};  // features two apart
  if (kind == 3) s = {n[1] * n[2] * n[3], n[2] * n[3], 1, n[2]};              // transposed
  if (kind == 4) s[1] = 0;                                                    // one head for all
  if (kind == 5) s = {0, n[2] * n[3], 0, 1};                                  // one row for all
  for (std::int64_t& stride : s) {
    if (kind < 4 && stride == 0) stride = 1;
  }
  if (id == TensorId::out && kind >= 4) return "";
  std::string text = " " + std::string(name_of(id)) + ".strides=";
  for (std::size_t axis = 0; axis < 4; ++axis) text += (axis ? "," : "") + std::to_string(s[axis]);
  return text;
}

}  // namespace

Candidate random_softmax_case(Random& random) {
  Candidate result;
  std::vector<int>& c = result.choices;
  bool square = false;
  Sizes sizes;
  std::string line = shape_tokens(random, c, square, sizes);
  line += random.pick(std::vector<std::string>{"", "", "", " dtype=f64", " dtype=f16", " dtype=bf16"}, c);
  line += random.pick(std::vector<std::string>{"", "", "", " scale=1", " scale=0", " scale=-0.3", " scale=0.05"}, c);

  enum Storage { plain, cached, paged, packed };
  const int storage = random.pick(std::vector<int>{plain, plain, plain, plain, plain, cached, paged, packed}, c);
  const bool past = storage == cached && sizes.key_length > 0;
  const std::string scores = score_tokens(random, c, sizes);
  line += visibility_tokens(random, c, square, past, scores.find("alibi") != std::string::npos);
  line += extent_tokens(random, c, sizes, storage == packed, past);
  line += scores;
  line += mask_tokens(random, c);
  if (past) {
    line += " past=" + std::to_string(1 + random.below(static_cast<std::size_t>(sizes.key_length)));
  } else if (storage == paged) {
    line += random.pick(std::vector<std::string>{" paged=1", " paged=16", " paged=64", " paged=16 layout=blhd"}, c);
  } else if (storage == packed) {
    line += " layout=thd";
  }
  const bool free_layout = storage == plain || past;
  std::string outputs = random.pick(std::vector<std::string>{"", "", "", " out=o,lse", " out=o,lse,weights",
                                                             " out=o,raw,capped", " out=o,lse,biased,weights"},
                                    c);
  if (!free_layout && outputs.size() > 10) outputs = " out=o,lse";
  if (past && random.below(2) == 0) outputs += outputs.empty() ? " out=o,present" : ",present";
  line += outputs;
  if (free_layout) line += layout_tokens(random, c);

  const std::string fill =
      fill_of(random.pick(std::vector<std::size_t>{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, c));
  if (!fill.empty()) line += " " + fill;
  const std::vector<std::string> poisons = {"",
                                            "",
                                            "",
                                            " poison=hidden:k",
                                            " poison=hidden:v",
                                            " poison=hidden:kv",
                                            " poison=visible:k",
                                            " poison=visible:v"};
  line += random.pick(poisons, c);
  // Strides replace a layout; a cache splits the tensor that they would describe.
  if (storage == plain) line += stride_tokens(parse_case(line), random, c);
  const std::uint64_t seed = random.below(1000);
  if (seed != 0) line += " seed=" + std::to_string(seed);
  result.problem = parse_case(line);
  return result;
}

Candidate random_linear_case(Random& random) {
  Candidate result;
  std::vector<int>& c = result.choices;
  using Texts = std::vector<std::string>;
  const std::string op = random.pick(Texts{"linear", "gated", "delta", "gated_delta"}, c);
  std::string line = "op=" + op + random.pick(Texts{"", "", " dtype=f64", " dtype=f16", " dtype=bf16"}, c);
  line += random.pick(Texts{"", " batch=2", " batch=3"}, c);
  line += random.pick(Texts{"", " heads=2", " heads=4/1", " heads=6/2"}, c);
  line += " seq=" + std::to_string(random.pick(std::vector<int>{0, 1, 2, 7, 16, 33, 64, 97}, c));
  line += random.pick(Texts{" dim=1", " dim=8", " dim=15", " dim=16/48", " dim=32", " dim=40/7", " dim=64"}, c);
  line += random.pick(Texts{"", "", " scale=1", " scale=2.5", " scale=-0.3"}, c);
  const std::string decay = random.pick(Texts{"", " decay=head"}, c), beta = random.pick(Texts{"", " beta=one"}, c);
  if (op.starts_with("gated")) line += decay;
  if (op.ends_with("delta")) line += beta;
  line += random.pick(Texts{"", " state"}, c) + random.pick(Texts{"", " out=o,present", " out=present"}, c);
  line += layout_tokens(random, c);
  const std::string fill = fill_of(random.pick(std::vector<std::size_t>{0, 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12}, c));
  line += (fill.empty() ? "" : " ") + fill;
  line += stride_tokens(parse_case(line), random, c);
  if (const std::uint64_t seed = random.below(1000); seed != 0) line += " seed=" + std::to_string(seed);
  result.problem = parse_case(line);
  return result;
}

double random_case_cost(const Problem& p) {
  if (p.op == Op::attention) return dense_multiply_adds(p);
  return row_operations(p) * static_cast<double>(p.batch * p.query_heads * p.query_length);
}

}  // namespace attest

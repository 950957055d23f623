#include "reference/options/option_features.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "reference/call/tensor_place.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

using Index = std::optional<std::size_t>;
using Number = std::optional<std::int64_t>;

// Where kernels change their ways: nothing, one, the widths of vectors, tiles and more than one, two, four of them,
// powers of two up to the limits of a grid's second and third extent and of 16-bit counters.
constexpr std::array<std::int64_t, 28> kLengthCuts = {0,    1,    2,    3,    4,    5,    8,     9,    16,  17,
                                                      32,   33,   64,   65,   128,  129,  256,   257,  512, 513,
                                                      1024, 1025, 2048, 2049, 4096, 4097, 32768, 65536};
constexpr std::array<std::int64_t, 18> kDimCuts = {1,  2,  3,  4,  5,   8,   9,   16,  17,
                                                   32, 33, 64, 65, 128, 129, 256, 257, 512};
constexpr std::array<std::int64_t, 11> kBatchCuts = {0, 1, 2, 3, 4, 8, 16, 64, 256, 4096, 65536};
constexpr std::array<std::int64_t, 12> kHeadCuts = {0, 1, 2, 3, 4, 5, 8, 9, 16, 32, 64, 128};
constexpr std::array<std::int64_t, 8> kGroupCuts = {1, 2, 3, 4, 5, 8, 9, 32};
constexpr std::array<std::int64_t, 9> kSideCuts = {0, 1, 2, 8, 32, 64, 128, 256, 1024};
constexpr std::array<std::int64_t, 7> kCountCuts = {1, 2, 16, 17, 64, 128, 1024};  // of keys, pages and blocks

template <class T>
std::optional<std::size_t> place_in(const std::vector<T>& list, const T& wanted) {
  const auto found = std::find(list.begin(), list.end(), wanted);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin());
}

// -- sizes that belong together

void set_queries(Call& p, std::int64_t n) {
  p.query_length = n;
  if (p.has_one_length() || p.layout == Layout::qkv) p.key_length = n;
}

void set_keys(Call& p, std::int64_t n) {
  p.key_length = n;
  if (p.has_one_length() || p.layout == Layout::qkv) p.query_length = n;
}

void set_key_dim(Call& p, std::int64_t n) {
  p.key_dim = n;
  if (p.has_parts() || p.layout == Layout::qkv) p.value_dim = n;
}

void set_value_dim(Call& p, std::int64_t n) {
  p.value_dim = n;
  if (p.has_parts() || p.layout == Layout::qkv) p.key_dim = n;
}

void set_heads(Call& p, std::int64_t key_heads, std::int64_t group) {
  p.key_heads = key_heads;
  p.query_heads = key_heads * group;
}

using Setter = void (*)(Call&, std::int64_t);

/// How a size ends, beside the range that it lies in, which stays where it can.
Feature end_feature(std::string name, std::int64_t Call::*size, Setter set, std::span<const std::int64_t> cuts) {
  const std::vector<Range> ranges = ranges_from(cuts);
  return named_feature(
      std::move(name), {kEnds.begin(), kEnds.end()},
      [size](const Call& p) -> Index {
        if (p.*size == 0) return std::nullopt;
        return end_of(p.*size);
      },
      [=](Problem& p, std::size_t which, std::uint64_t draw) {
        const auto lies_in =
            std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.holds(p.call.*size); });
        const std::int64_t from = p.call.*size + static_cast<std::int64_t>(draw % 16);
        Number near = lies_in == ranges.end() ? std::nullopt : nearest_with_end(from, which, *lies_in);
        if (!near) near = nearest_with_end(from, which, {1, Range::kOpen});
        if (near) set(p, *near);
      });
}

/// A given number of keys: option.print says whether it is there.
Feature integer_feature(const Option& option, std::span<const std::int64_t> cuts) {
  return size_feature(
      option.key, cuts,
      [print = option.print](const Problem& p) -> Number {
        const auto text = print(p);
        if (!text) return std::nullopt;
        return std::stoll(*text);
      },
      [parse = option.parse](Problem& p, std::int64_t n) {
        const std::string text = std::to_string(n);
        parse(p, {text, 1});
      });
}

/// Those of the list that hold.
Classes only_if(std::initializer_list<std::pair<bool, const char*>> list) {
  Classes names;
  for (const auto& [present, name] : list) {
    if (present) names.emplace_back(name);
  }
  return names;
}

}  // namespace

std::vector<Feature> features_by_kind(const Option& option) {
  const auto set_to = [parse = option.parse](Problem& p, const std::string& text) { parse(p, {text, 1}); };
  const auto is_set = [print = option.print](const Problem& p) { return print(p).has_value(); };
  switch (option.kind) {
    case OptionKind::integer: return {integer_feature(option, kCountCuts)};
    case OptionKind::name: {
      // Where the row is not printed the first name holds, which is the default; other operators don't have it.
      const std::vector<std::string> names = option.choices.empty() ? option.samples : option.choices;
      const bool has_default = !option.choices.empty();
      if (!option.varies()) return {};
      return {named_feature(
          option.key, names,
          [=, print = option.print, of = option.of](const Problem& p) -> Index {
            const auto text = print(p);
            if (text) return place_in(names, *text);
            return has_default && has_trait(p.call.op, of) ? place_in(names, names[option.default_choice])
                                                           : std::nullopt;
          },
          [=](Problem& p, std::size_t which, std::uint64_t) { set_to(p, names[which]); })};
    }
    case OptionKind::numbers_per_head: {
      const auto given = [=, samples = option.samples](Problem& p, std::uint64_t draw) {
        std::vector<std::string> numbers;
        std::copy_if(samples.begin(), samples.end(), std::back_inserter(numbers),
                     [](const auto& s) { return !s.empty(); });
        if (numbers.empty()) numbers = {"1"};
        std::string list;
        for (std::int64_t h = 0; h < p.call.query_heads; ++h) {
          const std::uint64_t own =
              (draw >> 3) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(h) * 0xbf58476d1ce4e5b9u;
          const double sign = own >> 63 == 0 ? 1 : -1;
          // Those of the row in half of the draws; else of any magnitude and sign.
          list +=
              (h > 0 ? "," : "") + (draw % 2 == 0 ? numbers[(draw / 2 + static_cast<std::uint64_t>(h)) % numbers.size()]
                                                  : print_number(sign * real_in(0x1p-10, 64, own >> 8)));
        }
        set_to(p, list);
      };
      if (!option.stands_alone) return {flag_feature(option.key, is_set, given)};
      return {named_feature(
          option.key, {"drawn", "given"},
          [print = option.print](const Problem& p) -> Index {
            const auto text = print(p);
            if (!text) return std::nullopt;
            return text->empty() ? 0 : 1;
          },
          [=](Problem& p, std::size_t which, std::uint64_t draw) {
            if (which == 0) return set_to(p, "");
            given(p, draw);
          })};
    }
    case OptionKind::flag:
    case OptionKind::tensor:
      return {flag_feature(option.key, is_set, [=](Problem& p, std::uint64_t) { set_to(p, ""); })};
    case OptionKind::number:
    case OptionKind::composite: break;
  }
  return {flag_feature(option.key, is_set, [=, samples = option.samples](Problem& p, std::uint64_t draw) {
    if (!samples.empty()) set_to(p, samples[draw % samples.size()]);
  })};
}

std::vector<Feature> batch_features() {
  return {size_feature(
      "batch", kBatchCuts, [](const Call& p) -> Number { return p.batch; },
      [](Call& p, std::int64_t n) { p.batch = n; })};
}

std::vector<Feature> head_features() {
  return {size_feature(
              "query heads", kHeadCuts, [](const Call& p) -> Number { return p.query_heads; },
              [](Call& p, std::int64_t n) {
                p.query_heads = n;
                if (p.has_parts() || n == 0 || p.key_heads == 0 || n % p.key_heads != 0) p.key_heads = n;
              }),
          size_feature(
              "key heads", kHeadCuts, [](const Call& p) -> Number { return p.key_heads; },
              [](Call& p, std::int64_t n) { set_heads(p, n, p.layout == Layout::qkv ? 1 : p.heads_per_group()); }),
          size_feature(
              "group", kGroupCuts,
              [](const Call& p) -> Number {
                if (p.key_heads == 0) return std::nullopt;
                return p.heads_per_group();
              },
              [](Call& p, std::int64_t n) {
                // Query heads stay where they can.
                const bool divides = p.query_heads > 0 && p.query_heads % n == 0;
                set_heads(p, divides ? p.query_heads / n : std::max<std::int64_t>(p.key_heads, 1), n);
              }),
          flag_feature(
              "as many heads as sequences", [](const Call& p) { return p.batch > 1 && p.batch == p.query_heads; },
              [](Call& p, std::uint64_t) {
                p.batch = std::max<std::int64_t>({p.batch, p.query_heads, 2});
                p.query_heads = p.batch;
                if (p.has_parts() || p.key_heads == 0 || p.batch % p.key_heads != 0) p.key_heads = p.batch;
              })};
}

std::vector<Feature> length_features() {
  return {size_feature(
              "queries", kLengthCuts, [](const Call& p) -> Number { return p.query_length; }, set_queries),
          end_feature("end of queries", &Call::query_length, set_queries, kLengthCuts),
          size_feature(
              "keys", kLengthCuts, [](const Call& p) -> Number { return p.key_length; }, set_keys),
          end_feature("end of keys", &Call::key_length, set_keys, kLengthCuts),
          named_feature(
              "queries to keys", {"fewer", "equal", "more"},
              [](const Call& p) -> Index {
                return p.query_length < p.key_length ? 0 : p.query_length == p.key_length ? 1 : 2;
              },
              [](Call& p, std::size_t which, std::uint64_t draw) {
                const auto more = static_cast<std::int64_t>(1 + draw % 70);
                if (which == 0 && p.query_length >= p.key_length) p.key_length = p.query_length + more;
                if (which == 1) p.query_length = p.key_length = std::max(p.query_length, p.key_length);
                if (which == 2 && p.query_length <= p.key_length) p.query_length = p.key_length + more;
              }),
          flag_feature(
              "keys a multiple of queries",
              [](const Call& p) {
                return p.query_length > 1 && p.key_length > p.query_length && p.key_length % p.query_length == 0;
              },
              [](Call& p, std::uint64_t draw) {
                // Keys stay where a number of queries divides them.
                for (std::int64_t q = 2 + static_cast<std::int64_t>(draw % 16); q > 1 && draw % 2 == 0; --q) {
                  if (p.key_length <= q || p.key_length % q != 0) continue;
                  p.query_length = q;
                  return;
                }
                p.query_length = std::max<std::int64_t>(p.query_length, 2);
                const std::int64_t times = std::max<std::int64_t>(p.key_length / p.query_length, 2);
                p.key_length = p.query_length * times;
              })};
}

std::vector<Feature> dim_features() {
  return {size_feature(
              "key dim", kDimCuts, [](const Call& p) -> Number { return p.key_dim; }, set_key_dim),
          end_feature("end of key dim", &Call::key_dim, set_key_dim, kDimCuts),
          size_feature(
              "value dim", kDimCuts, [](const Call& p) -> Number { return p.value_dim; }, set_value_dim),
          end_feature("end of value dim", &Call::value_dim, set_value_dim, kDimCuts),
          named_feature(
              "key dim to value dim", {"smaller", "equal", "larger"},
              [](const Call& p) -> Index { return p.key_dim < p.value_dim    ? 0
                                                  : p.key_dim == p.value_dim ? 1
                                                                             : 2; },
              [](Call& p, std::size_t which, std::uint64_t draw) {
                const auto more = static_cast<std::int64_t>(1 + draw % 40);
                if (which == 0 && p.key_dim >= p.value_dim) p.value_dim = p.key_dim + more;
                if (which == 1) p.value_dim = p.key_dim = draw % 2 == 0 ? p.key_dim : p.value_dim;
                if (which == 2 && p.key_dim <= p.value_dim) p.key_dim = p.value_dim + more;
              })};
}

std::vector<Feature> scale_features() {
  static constexpr std::array values = {-0.3, 0.0, 0.05, 1.0, 2.5};
  // Half of the draws are these; the others are anywhere in the class, up to where scores stay numbers in every type.
  return {named_feature(
      "scale", {"below 0", "0", "0 to 1", "1", "above 1"},
      [](const Call& p) -> Index {
        if (!p.scale) return std::nullopt;
        return *p.scale < 0 ? 0 : *p.scale == 0 ? 1 : *p.scale < 1 ? 2 : *p.scale == 1 ? 3 : 4;
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        p.scale = values[which];
        if (draw % 2 == 0) return;
        if (which == 0) p.scale = -real_in(0x1p-12, 64, draw / 2);
        if (which == 2) p.scale = real_in(0x1p-12, 1, draw / 2);
        if (which == 4) p.scale = real_in(1.0625, 64, draw / 2);
      })};
}

std::vector<Feature> align_features() {
  return {named_feature(
      "align", names_of<Align>(),
      [](const Call& p) -> Index {
        if (!p.uses_diagonal() || p.query_length == p.key_length || p.past > 0) return std::nullopt;
        return static_cast<std::size_t>(p.align);
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        p.align = static_cast<Align>(which);
        p.past = 0;
        p.past_lengths.clear();
        if (!p.uses_diagonal()) p.causal = true;
        if (p.query_length == p.key_length) p.key_length += static_cast<std::int64_t>(1 + draw % 70);
      })};
}

std::vector<Feature> window_features() {
  const auto side = [](std::string name, std::int64_t Call::*member) {
    return size_feature(
        std::move(name), kSideCuts,
        [member](const Call& p) -> Number {
          if (p.*member == Call::kUnbounded) return std::nullopt;
          return p.*member;
        },
        [member](Call& p, std::int64_t n) { p.*member = n; });
  };
  return {side("window left", &Call::window_left), side("window right", &Call::window_right)};
}

std::vector<Feature> ragged_features() {
  const auto length = [](std::int64_t max, std::size_t which, std::uint64_t draw) -> std::int64_t {
    if (which == 0) return draw % 2 == 0 ? 0 : max / 2;
    if (which == 2) return max;
    return std::min<std::int64_t>(max, 1 + static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(max + 1)));
  };
  return {named_feature(
              "lengths", {"of keys", "of queries and keys"},
              [](const Call& p) -> Index {
                if (!p.lengths) return std::nullopt;
                return p.lengths->query.empty() ? 0 : 1;
              },
              [length](Call& p, std::size_t which, std::uint64_t draw) {
                if (!p.lengths) p.lengths.emplace();
                const auto batch = static_cast<std::size_t>(p.batch);
                LengthSpec& spec = *p.lengths;
                spec.query.clear();
                spec.key.resize(batch, length(p.key_length, 1, draw));
                for (std::size_t b = 0; which == 1 && b < batch; ++b) {
                  spec.query.push_back(length(p.query_length, 1, draw / (b + 1)));
                }
              }),
          named_feature(
              "shortest length", {"0", "some", "whole"},
              [](const Call& p) -> Index {
                if (!p.lengths || p.lengths->key.empty()) return std::nullopt;
                const std::int64_t least = *std::min_element(p.lengths->key.begin(), p.lengths->key.end());
                return least == 0 ? 0 : least < p.key_length ? 1 : 2;
              },
              [length](Call& p, std::size_t which, std::uint64_t draw) {
                if (!p.lengths) p.lengths.emplace();
                p.lengths->key.assign(static_cast<std::size_t>(p.batch), p.key_length);
                for (std::size_t b = 0; b < p.lengths->key.size(); ++b) {
                  p.lengths->key[b] = length(p.key_length, which, draw / (b + 1));
                }
                if (which == 0 && !p.lengths->key.empty()) p.lengths->key[draw % p.lengths->key.size()] = 0;
              })};
}

std::vector<Feature> segment_features() {
  static constexpr std::array<std::int64_t, 4> cuts = {1, 2, 3, 4};
  const auto parts = [](std::int64_t total, std::int64_t count, std::uint64_t draw) {
    std::vector<std::int64_t> list;
    for (std::int64_t n = 1; n < count; ++n) {
      list.push_back(static_cast<std::int64_t>((draw >> n) % static_cast<std::uint64_t>(total + 1)));
      total -= list.back();
    }
    list.push_back(total);
    return list;
  };
  const auto set = [parts](Call& p, std::int64_t count, std::uint64_t draw) {
    p.segments = LengthSpec{parts(p.query_length, count, draw), parts(p.key_length, count, draw * 3 + 1)};
  };
  Feature count = size_feature(
      "segments", cuts,
      [](const Call& p) -> Number {
        if (!p.segments) return std::nullopt;
        return static_cast<std::int64_t>(p.segments->key.size());
      },
      nullptr);
  // Of many documents most are empty: an open count stays near its beginning.
  count.meet = [set](Problem& p, std::size_t which, std::uint64_t draw) {
    set(p, which + 1 < cuts.size() ? cuts[which] : number_in({cuts[which], 40}, draw), draw);
  };
  count.set = [](Call& p, std::int64_t n) {
    p.query_length = std::max(p.query_length, n);
    p.key_length = std::max(p.key_length, n);
    const auto each_one = [n](std::int64_t total) {
      std::vector<std::int64_t> list(static_cast<std::size_t>(n), 1);
      list.back() = total - n + 1;
      return list;
    };
    p.segments = LengthSpec{each_one(p.query_length), each_one(p.key_length)};
  };
  const auto has_empty = [](const Call& p) {
    return p.segments && std::find(p.segments->key.begin(), p.segments->key.end(), 0) != p.segments->key.end();
  };
  return {std::move(count), flag_feature("empty segment", has_empty, [](Call& p, std::uint64_t draw) {
            const std::size_t n = p.segments && p.segments->key.size() > 1 ? p.segments->key.size() : 2;
            std::vector<std::int64_t> keys(n, 0), queries(n, 0);
            keys.back() = p.key_length;
            queries[draw % n] = p.query_length;
            p.segments = LengthSpec{queries, keys};
          })};
}

Classes batch_covered(const Call& p) { return only_if({{p.batch > 1, "batch"}, {p.batch == 0, "no batch"}}); }

Classes heads_covered(const Call& p) {
  return only_if({{p.query_heads > 1, "heads"}, {p.heads_per_group() > 1, "grouped heads"}});
}

Classes lengths_covered(const Call& p) {
  return only_if({{p.query_length < p.key_length, "Lq < Lk"},
                  {p.query_length > p.key_length, "Lq > Lk"},
                  {p.query_length == 0 || p.key_length == 0, "empty"}});
}

Classes dims_covered(const Call& p) { return only_if({{p.key_dim != p.value_dim, "Dqk != Dv"}}); }

Classes window_covered(const Call& p) {
  return only_if(
      {{p.window_left != Call::kUnbounded, "window left"}, {p.window_right != Call::kUnbounded, "window right"}});
}

Classes mask_covered(const Call& p) { return {p.mask->additive ? "mask=add" : "mask=bool"}; }

Classes outputs_covered(const Call& p) {
  Classes names;
  for (Output output : p.outputs) {
    if (output != Output::o) names.push_back("out=" + std::string(name_of(output)));
  }
  return names;
}

}  // namespace attest

#include "harness/cases/random_case.h"

#include <algorithm>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/cases/memory.h"
#include "harness/cases/option_values.h"
#include "harness/cases/possible_gradients.h"
#include "reference/call/tensor_place.h"
#include "reference/operators/operator.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

const std::vector<std::int64_t> kLengths = {0,  1,  2,  3,  5,   7,   13,  15,  16,  17,  31,  32,  33,  47,  48,  49,
                                            63, 64, 65, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257, 509, 512, 513};
const std::vector<std::int64_t> kLinearLengths = {0, 1, 2, 7, 16, 33, 64, 97};
const std::vector<std::int64_t> kDims = {1, 2, 3, 8, 15, 16, 17, 40, 64, 72, 80, 96, 128, 192, 256};
const std::vector<std::int64_t> kLinearDims = {1, 7, 8, 15, 16, 32, 40, 48, 64};
const std::vector<std::pair<std::int64_t, std::int64_t>> kHeads = {{1, 1}, {2, 2}, {3, 3}, {4, 1}, {6, 2}, {8, 4}};
const std::vector<std::int64_t> kBatches = {1, 1, 2, 3};

/// Each of the options is drawn with its own chance, and stays where the case remains one.
void draw_options(std::vector<const Option*> rows, Problem& problem, Random& random) {
  for (std::size_t n = rows.size(); n > 1; --n) std::swap(rows[n - 1], rows[random.below(n)]);
  for (const Option* option : rows) {
    if (random.below(static_cast<std::size_t>(option->one_in)) != 0) continue;
    const std::optional<std::string> value = random_value(*option, problem, random);
    if (!value) continue;
    if (std::optional<Problem> changed = with_option(problem, *option, *value)) problem = std::move(*changed);
  }
}

/// The whole length now and then, and none at all.
std::string random_lengths(std::int64_t batch, std::int64_t max, Random& random) {
  std::string text;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::size_t kind = random.below(5);
    const auto any = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(max) + 1));
    text += (b > 0 ? "," : "") + integer_text(kind == 0 ? max : kind == 1 ? 0 : any);
  }
  return text;
}

/// The version of the contract whose options all lines of a seed have been drawn with from the beginning.
constexpr int kFirstVersion = 2;

/// Gradients of the problem, some of those that it can have.
Problem with_random_pass(const Problem& problem, Random& random) {
  Problem p = problem;
  p.call.set_pass(random.below(2) == 0 ? Pass::backward : Pass::both);
  std::vector<Output>& outputs = p.call.outputs;
  std::erase_if(outputs, is_gradient);
  for (const Output output : possible_gradients(p)) {
    if (random.below(3) != 0) outputs.push_back(output);
  }
  if (outputs.empty() || !is_gradient(outputs.back()))
    outputs.push_back(random.pick(std::vector{Output::dq, Output::dk, Output::dv}));
  (p.call.has_scores() ? p.call.dlse : p.call.dpresent) = random.below(p.call.has_scores() ? 3 : 2) == 0;
  return canonical(p).value_or(problem);
}

/// The mask's fill becomes a tree, spans or chunks.
Problem with_sequence_mask(const Problem& problem, Random& random) {
  Problem p = problem;
  p.data.mask_fill.name = random.pick(std::vector<std::string>{"tree", "spans", "chunks"});
  const std::int64_t largest = std::max<std::int64_t>(std::min(p.call.query_length, p.call.key_length), 1);
  p.data.mask_fill.args = {static_cast<double>(number_in({1, largest}, random.below(std::size_t{1} << 40)))};
  return canonical(p).value_or(problem);
}

/// Sequences of linear attention get lengths of their own, and half of the time no padding.
Problem with_packed_sequences(const Problem& problem, Random& random) {
  Problem p = problem;
  p.call.lengths.emplace();
  for (std::int64_t b = 0; b < p.call.batch; ++b)
    p.call.lengths->key.push_back(number_in({0, p.call.key_length}, random.below(std::size_t{1} << 40)));
  if (random.below(2) == 0) return canonical(p).value_or(problem);
  p.call.layout = Layout::thd;
  p.call.gap = random.below(3) == 0 ? 2 : 0;
  for (TensorSpec& spec : p.call.tensors) {
    spec.layout.reset();
    spec.strides.reset();
  }
  return canonical(p).value_or(problem);
}

/// Its lengths become data, or it appends to a cache, whose type is narrower now and then and whose keys are rotated
/// where the call rotates; or both.
Problem with_random_launch(const Problem& problem, Random& random) {
  Problem p = problem;
  const std::size_t kind = random.below(3);
  for (const char* key : {"dynamic", "append"}) {
    if (kind == (key == std::string_view("append") ? 0 : 1)) continue;
    find_option(key)->features.front().meet(p, 0, 0);
  }
  if (!p.call.lengths && random.below(2) == 0) {
    p.call.lengths.emplace();
    for (std::int64_t b = 0; b < p.call.batch; ++b) {
      const auto length = [&](std::int64_t most) { return number_in({0, most}, random.below(std::size_t{1} << 40)); };
      p.call.lengths->query.push_back(length(p.call.query_length));
      p.call.lengths->key.push_back(length(p.call.key_length));
    }
  }
  for (const TensorId id : {TensorId::k, TensorId::v}) {
    if (p.call.append && random.below(3) == 0)
      p.call.tensor(id).dtype = random.pick(std::vector{DType::f16, DType::bf16});
  }
  if (p.call.append && p.call.rope != Rope::none) p.call.rotated_cache = random.below(2) == 0;
  fit_to_sizes(p);
  return canonical(p).value_or(problem);
}

/// Types, strides and offsets of tensors that a problem has got late; `starts` are those of the options' keys.
void place_anywhere(std::initializer_list<std::string_view> starts, Problem& problem, Random& random) {
  std::vector<const Option*> rows;
  for (const Option& option : options()) {
    const auto is_one = [&](std::string_view start) { return option.key.starts_with(start); };
    if (std::ranges::any_of(starts, is_one)) rows.push_back(&option);
  }
  draw_options(std::move(rows), problem, random);
}

/// Columns of latent queries and keys become tensors of their own, placed anywhere.
Problem with_latent_parts(const Problem& problem, Random& random) {
  Problem p = problem;
  find_option("latent.parts")->features.front().meet(p, 0, 0);
  fit_to_sizes(p);
  std::optional<Problem> apart = canonical(p);
  if (!apart) return problem;
  place_anywhere({"q_rope.", "k_rope."}, *apart, random);
  return *apart;
}

/// Whether q, k or v is stored in 8 bits.
bool has_codes(const Call& p) {
  return !is_wide(type_of(p, TensorId::q)) || !is_wide(type_of(p, TensorId::k)) || !is_wide(type_of(p, TensorId::v));
}

/// Some of q, k and v are stored in 8 bits, with scales.
Problem with_random_scales(const Problem& problem, Random& random) {
  Problem p = problem;
  for (const char* key : {"q.scale", "k.scale", "v.scale"}) {
    if (random.below(2) == 0 || (p.call.latent && key == std::string_view("v.scale"))) continue;
    const Feature& feature = find_option(key)->features.front();
    feature.meet(p, random.below(feature.classes.size()), random.below(std::size_t{1} << 40));
  }
  fit_to_sizes(p);
  std::optional<Problem> scaled = canonical(p);
  if (!scaled) return problem;
  place_anywhere({"q_scales.", "k_scales.", "v_scales."}, *scaled, random);
  return *scaled;
}

/// Options of later versions draw numbers of their own, made from the line as it is without them: a seed goes on giving
/// the lines that it has given.
Problem with_random_options(Problem problem, Random& random) {
  std::vector<const Option*> first, later;
  for (const Option& option : options()) {
    const bool packs = problem.call.has_state() && (option.key == "lengths" || option.key == "gap");
    const bool launches = option.key == "dynamic" || option.key == "append";
    if (option.varies() && option.has(problem.call.op) && option.key != "pass" && !packs && !launches)
      (option.since <= kFirstVersion ? first : later).push_back(&option);
  }
  draw_options(std::move(first), problem, random);
  std::uint64_t seed = 0;
  for (const char letter : print_case(problem)) seed = hash_words(seed, 78, static_cast<unsigned char>(letter));
  Random own(seed), of_past(seed + 1), of_pass(seed + 2), of_mask(seed + 3), of_packing(seed + 4), of_launch(seed + 5),
      of_parts(seed + 6), of_scales(seed + 7);
  if (problem.call.past > 0 && problem.call.batch > 1 && of_past.below(3) == 0) {
    const std::string counts = random_lengths(problem.call.batch, problem.call.past, of_past);
    if (std::optional<Problem> changed = with_option(problem, *find_option("past"), counts)) problem = *changed;
  }
  if (problem.call.mask && of_mask.below(6) == 0) problem = with_sequence_mask(problem, of_mask);
  // Cases of linear attention are few.
  if (traits_of(problem.call.op).tokens && of_pass.below(problem.call.has_scores() ? 8 : 2) == 0)
    problem = with_random_pass(problem, of_pass);
  if (problem.call.has_state() && problem.call.batch > 0 && of_packing.below(3) == 0)
    problem = with_packed_sequences(problem, of_packing);
  if (problem.call.has_scores() && problem.call.past == 0 && of_launch.below(8) == 0)
    problem = with_random_launch(problem, of_launch);
  draw_options(std::move(later), problem, own);
  if (problem.call.latent && of_parts.below(2) == 0) problem = with_latent_parts(problem, of_parts);
  if (problem.call.has_scores() && of_scales.below(has_codes(problem.call) ? 2 : 12) == 0)
    problem = with_random_scales(problem, of_scales);
  return problem;
}

/// `parts` numbers of at least 0 that add up to `total`.
std::string random_parts(std::int64_t total, std::size_t parts, Random& random) {
  std::string text;
  for (std::size_t n = 1; n < parts; ++n) {
    const auto part = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(total) + 1));
    text += integer_text(part) + ",";
    total -= part;
  }
  return text + integer_text(total);
}

std::optional<std::string> draw_lengths(const Call& p, Random& random) {
  if (p.batch == 0) return std::nullopt;
  const std::string keys = random_lengths(p.batch, p.key_length, random);
  if (random.below(2) == 0) return keys;
  return "q:" + random_lengths(p.batch, p.query_length, random) + "/k:" + keys;
}

std::optional<std::string> draw_segments(const Call& p, Random& random) {
  const std::size_t count = 2 + random.below(2);
  const std::string queries = random_parts(p.query_length, count, random);
  return "q:" + queries + "/k:" + random_parts(p.key_length, count, random);
}

std::optional<std::string> draw_mask(const Problem&, Random& random) {
  static const std::vector<std::pair<std::string, std::string>> fills = {
      {"bool:", "random(0.5)"}, {"bool:", "random(0.05)"}, {"bool:", "band(3)"},     {"bool:", "band(40)"},
      {"bool:", "blocks(16)"},  {"bool:", "rows(0.4)"},    {"bool:", "all"},         {"bool:", "none"},
      {"add:", "normal"},       {"add:", "neginf(0.3)"},   {"add:", "neginf(0.97)"}, {"add:", "finitemin(0.5)"},
      {"add:", "band(20)"},     {"add:", "large"},         {"add:", "nan(0.02)"},    {"add:", "nonfinite(0.3)"},
      {"add:", "padding(0.5)"}, {"add:", "wide"}};
  std::string axes = "BHQK";
  for (char& axis : axes) {
    if (random.below(2) == 0) axis = '1';
  }
  const auto& [kind, fill] = random.pick(fills);
  return kind + axes + ":" + fill;
}

/// Padded rows, features far apart, transposed, a broadcast axis.
std::optional<std::string> draw_strides(TensorId id, const Call& p, Random& random) {
  if (!has_tensor(p, id)) return std::nullopt;
  const Index4 n = place_of(p, id).shape;
  const bool unique = has_place_for_each(id);
  const std::size_t kind = random.below(unique || id == TensorId::mask ? 4 : 6);
  Index4 s = {n[1] * n[2] * (n[3] + 3), n[2] * (n[3] + 3), n[3] + 3, 1};      // 0: rows with a gap
  if (kind == 1) s = {n[1] * n[2] * n[3] * 2, n[2] * n[3] * 2, n[3] * 2, 2};  // features two apart
  if (kind == 2) s = {n[1] * n[2] * n[3], n[2] * n[3], 1, n[2]};              // transposed
  if (kind == 3) s = {n[1] * (n[2] * n[3] + 3), n[2] * n[3] + 3, n[3], 1};    // dense rows, heads with a gap
  if (kind == 4) s[1] = 0;                                                    // one head for all
  if (kind == 5) s = {0, n[2] * n[3], 0, 1};                                  // one row for all
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (kind < 4 && s[axis] == 0) s[axis] = 1;
    if (broadcast_axes(p, id)[axis] && !unique) s[axis] = 0;
  }
  return joined(s, integer_text);
}

/// A number of one of the option's classes, anywhere in it.
std::optional<std::string> value_of_class(const Option& option, Problem p, Random& random) {
  const Feature& feature = random.pick(option.features);
  feature.meet(p, random.below(feature.classes.size()), random.below(std::size_t{1} << 40));
  fit_to_sizes(p);
  return option.print(p);
}

bool is_of_numbers(const Option& option) {
  return option.kind == OptionKind::number || option.kind == OptionKind::integer ||
         option.kind == OptionKind::numbers_per_head || option.key == "window" || option.key == "blocks" ||
         option.key.ends_with("fill");
}

/// Values that are made for the problem rather than picked from a row's samples.
std::optional<std::string> drawn_value(const std::string& key, const Problem& p, Random& random) {
  if (key == "lengths") return draw_lengths(p, random);
  if (key == "segments") return draw_segments(p, random);
  if (key == "mask") return draw_mask(p, random);
  if (key == "seed") return std::to_string(random.below(1000));
  if (key == "layout" && p.call.lengths && random.below(4) != 0) return "thd";  // which nothing else can have
  for (TensorId id : values_of<TensorId>()) {
    if (key == std::string(name_of(id)) + ".strides") return draw_strides(id, p, random);
  }
  return std::nullopt;
}

/// One of the list, or in a quarter of the draws any number up to its largest.
std::int64_t size_of(const std::vector<std::int64_t>& list, std::int64_t least, Random& random) {
  if (random.below(4) != 0) return random.pick(list);
  return number_in({least, list.back()}, random.below(std::size_t{1} << 40));
}

/// Head dims, heads and batch; the lengths depend on the operator.
void draw_other_sizes(Call& p, const std::vector<std::int64_t>& dims, Random& random) {
  p.key_dim = size_of(dims, 1, random);
  p.value_dim = random.below(3) != 0 ? p.key_dim : size_of(dims, 1, random);
  std::tie(p.query_heads, p.key_heads) = random.pick(kHeads);
  p.batch = random.pick(kBatches);
}

}  // namespace

std::optional<std::string> random_value(const Option& option, const Problem& problem, Random& random) {
  std::optional<std::string> value = drawn_value(option.key, problem, random);
  if (value) return value;
  if (is_of_numbers(option) && !option.features.empty() && random.below(2) == 0) {
    return value_of_class(option, problem, random);
  }
  return random_sample(option, problem, random);
}

Problem random_softmax_case(Random& random) {
  Problem p;
  p.call.query_length = size_of(kLengths, 0, random);
  p.call.key_length = random.below(3) == 0 ? p.call.query_length : size_of(kLengths, 0, random);
  draw_other_sizes(p, kDims, random);
  return with_random_options(p, random);
}

Problem random_other_case(Random& random) {
  Problem p;
  p.call.op = values_of<Op>()[1 + random.below(values_of<Op>().size() - 1)];
  p.call.query_length = p.call.key_length = size_of(kLinearLengths, 0, random);
  draw_other_sizes(p, kLinearDims, random);
  if (p.call.has_parts()) {
    p.call.key_heads = p.call.query_heads;
    p.call.value_dim = p.call.key_dim;
  }
  return with_random_options(p, random);
}

Problem random_case(Random& random) {
  return random.below(16) == 0 ? random_other_case(random) : random_softmax_case(random);
}

double random_case_cost(const Problem& p) {
  const double elements = storage_bytes(p) / static_cast<double>(size_of(p.call.dtype));
  return std::max(operator_of(p).multiply_adds(p), elements);
}

}  // namespace attest

#include "harness/cases/option_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::vector<double> numbers_in(const std::string& text) {
  return text.empty() ? std::vector<double>{} : parse_numbers({text, 1}, "a number", true);
}

/// Each number of a list towards 0, 1 or a whole one.
std::vector<std::string> simpler_lists(const std::vector<double>& list) {
  std::vector<std::string> texts;
  for (std::size_t n = 0; n < list.size(); ++n) {
    for (double to : {0.0, 1.0, std::trunc(list[n])}) {
      if (!(std::fabs(to) < std::fabs(list[n]))) continue;
      std::vector<double> simpler = list;
      simpler[n] = to;
      texts.push_back(joined(simpler, print_number));
    }
  }
  return texts;
}

/// Segments are cut from the end, and the last one takes what is left.
void fit_segments(std::vector<std::int64_t>& list, std::int64_t total) {
  std::int64_t room = total;
  for (std::int64_t& n : list) {
    n = std::min(n, room);
    room -= n;
  }
  if (!list.empty()) list.back() += room;
}

void fit_lengths(std::vector<std::int64_t>& list, std::size_t batch, std::int64_t max) {
  if (list.size() > batch) list.resize(batch);
  for (std::int64_t& n : list) n = std::min(n, max);
}

/// Rows of codes of 4 bits have an even number of them, and begin with a byte.
void fit_pairs(Call& p) {
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v, TensorId::q_rope,
                            TensorId::k_rope}) {
    if (!has_tensor(p, id) || !is_packed_in_pairs(type_of(p, id))) continue;
    const bool of_values = row_of(id).axes[3] == Axis::value_dim;
    if (of_values || (p.latent_apart && !is_part(id))) p.value_dim += p.value_dim % 2;
    if (!of_values) p.key_dim += (is_part(id) ? stored_shape(p, id)[3] : p.key_dim) % 2;
    if (p.latent_apart && p.key_dim == p.value_dim) p.key_dim += 2;
    TensorSpec& spec = p.tensor(id);
    spec.offset += spec.offset % 2;
    if (!spec.strides) continue;
    Index4& strides = *spec.strides;
    const auto is_odd = [](std::int64_t stride) { return stride % 2 != 0; };
    const bool far = std::any_of(strides.begin(), strides.end() - 1, is_odd) || strides[3] != 1;
    for (std::size_t axis = 0; axis < 3 && far; ++axis) strides[axis] *= 2;
    strides[3] = 1;
  }
}

}  // namespace

std::vector<std::int64_t> steps_towards(std::int64_t min, std::int64_t now) {
  std::vector<std::int64_t> steps;
  // A power of two for those who take whole tiles alone.
  const auto power = now > 1 ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(now - 1))) : 0;
  for (std::int64_t to : {min, min + 1, min + (now - min) / 2, power, now - 1}) {
    if (to >= min && to < now && std::find(steps.begin(), steps.end(), to) == steps.end()) steps.push_back(to);
  }
  return steps;
}

std::vector<std::string> simpler_values(const Option& option, const Problem& problem) {
  const std::optional<std::string> now = option.print(problem);
  if (!now || now->empty()) return {};
  std::vector<std::string> texts;
  switch (option.kind) {
    case OptionKind::integer:
      for (std::int64_t to : steps_towards(std::max<std::int64_t>(option.min, 1), std::stoll(*now))) {
        texts.push_back(integer_text(to));
        if (const std::size_t colon = now->find(':'); colon != std::string::npos) {  // prefix=N:causal
          texts.push_back(texts.back() + now->substr(colon));
        }
      }
      break;
    case OptionKind::number:
      if (!option.samples.empty() && *now != option.samples.front()) texts.push_back(option.samples.front());
      break;
    case OptionKind::numbers_per_head: return simpler_lists(numbers_in(*now));
    case OptionKind::flag:
    case OptionKind::name:
    case OptionKind::tensor:
    case OptionKind::composite: break;
  }
  return texts;
}

namespace {

/// `pick` gives one of the samples, for each head where it is a list of them.
std::optional<std::string> sample_by(const Option& option, const Problem& problem,
                                     const std::function<const std::string&()>& pick) {
  if (option.samples.empty()) return std::nullopt;
  const std::string& sample = pick();
  if (option.kind == OptionKind::integer && option.at_most) {
    return integer_text(std::min<std::int64_t>(std::stoll(sample), extent_of(problem, *option.at_most)));
  }
  if (option.kind != OptionKind::numbers_per_head || sample.empty()) return sample;
  std::string list = sample;
  for (std::int64_t h = 1; h < problem.call.query_heads; ++h) {
    const std::string& next = pick();
    list += "," + (next.empty() ? sample : next);
  }
  return list;
}

}  // namespace

std::optional<std::string> random_sample(const Option& option, const Problem& problem, Random& random) {
  return sample_by(option, problem, [&]() -> const std::string& { return random.pick(option.samples); });
}

std::optional<std::string> plainest_sample(const Option& option, const Problem& problem) {
  return sample_by(option, problem, [&]() -> const std::string& { return option.samples.front(); });
}

/// One count for each batch, none above Lk; a batch that grew has what the last had.
void fit_past_lengths(Problem& problem) {
  Call& p = problem.call;
  if (p.past_lengths.empty()) return;
  p.past_lengths.resize(static_cast<std::size_t>(p.batch), p.past_lengths.back());
  for (std::int64_t& count : p.past_lengths) count = std::min(count, p.key_length);
  const Option& past = *find_option("past");
  if (p.batch > 0)
    past.parse(problem, {joined(p.past_lengths, integer_text), 1});
  else
    past.drop(problem);
}

void fit_to_sizes(Problem& problem) {
  Call& p = problem.call;
  if (p.has_parts()) {
    p.key_heads = p.query_heads;
    p.key_length = p.query_length;
    p.key_dim = p.value_dim;
  }
  if (p.key_heads > p.query_heads) p.key_heads = p.query_heads;
  if (p.key_heads > 0) p.query_heads -= p.query_heads % p.key_heads;
  if (p.qk_heads > 0 && p.key_heads > 0) {
    p.query_heads = p.key_heads = std::max(p.key_heads - p.key_heads % p.qk_heads, p.qk_heads);
  }
  for (const Option& option : options()) {
    const std::optional<std::string> now = option.print(problem);
    if (!now || now->empty()) continue;
    if (option.kind == OptionKind::numbers_per_head) {
      std::vector<double> list = numbers_in(*now);
      if (list.size() <= static_cast<std::size_t>(p.query_heads)) continue;
      if (option.key == "alibi" && list.size() == static_cast<std::size_t>(p.batch * p.query_heads)) continue;
      list.resize(static_cast<std::size_t>(p.query_heads));
      option.drop(problem);
      option.parse(problem, {joined(list, print_number), 1});
    } else if (option.at_most && std::stoll(*now) > extent_of(p, *option.at_most)) {
      option.parse(problem, {integer_text(extent_of(p, *option.at_most)), 1});
    }
  }
  fit_past_lengths(problem);
  if (p.lengths) {
    if (p.has_one_length()) p.lengths->query.clear();
    fit_lengths(p.lengths->query, static_cast<std::size_t>(p.batch), p.query_length);
    fit_lengths(p.lengths->key, static_cast<std::size_t>(p.batch), p.key_length);
  }
  // Each query brings a key.
  if (p.append && p.key_length == 0) p.query_length = 0;
  if (p.append) p.key_length = std::max(p.key_length, p.query_length);
  if (p.append && p.lengths) {
    LengthSpec& lengths = *p.lengths;
    const bool too_few = std::ranges::any_of(lengths.key, [&](std::int64_t n) { return n < p.query_length; });
    if (lengths.query.empty() && too_few) lengths.query.assign(lengths.key.size(), p.query_length);
    for (std::size_t b = 0; b < std::min(lengths.query.size(), lengths.key.size()); ++b)
      lengths.query[b] = std::min(lengths.query[b], lengths.key[b]);
  }
  if (p.segments) {
    fit_segments(p.segments->query, p.query_length);
    fit_segments(p.segments->key, p.key_length);
  }
  if (p.rope != Rope::none && p.rotated_dims() > p.key_dim) p.rope_dims = 0;
  if (p.rope != Rope::none && p.rope_dims == 0 && p.key_dim % 2 != 0) p.rope_dims = p.key_dim - 1;
  if (p.rope == Rope::none) problem.data.rope_base = TestData{}.rope_base;
  Fill& mask = problem.data.mask_fill;
  if (!p.mask) mask = {};
  if (mask.name == "tree")
    mask.args[0] = std::min(mask.args[0], static_cast<double>(std::min(p.query_length, p.key_length)));
  for (const TensorRow& row : tensor_rows()) {
    if (!has_tensor(p, row.id)) p.tensor(row.id) = {};
  }
  fit_pairs(p);
  if (!p.blocks) problem.data.block_fill = {};
  if (!p.select) problem.data.select_fill = {"distinct", {}};
  if (!p.initial_state) problem.data.state_fill.reset();
  if (!p.has_parts()) find_option("parts")->drop(problem);
}

std::optional<Problem> with_option(const Problem& problem, const Option& option, const std::string& value) {
  Problem changed = problem;
  try {
    option.drop(changed);
    option.parse(changed, {value, 1});
  } catch (const CaseError&) {
    return std::nullopt;
  }
  return canonical(changed);
}

}  // namespace attest

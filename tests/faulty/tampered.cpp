#include "tests/faulty/tampered.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reference/call/launch.h"
#include "tests/faulty/around.h"
#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// The memory stays as it is: a type of another size would reach beyond it.
void read_in_type_of(ChangedInputs& c, TensorId id, DType type) {
  ConstTensor& view = c.inputs.change(id);
  if (view.data && size_of(view.dtype) == size_of(type)) view.dtype = type;
}

constexpr std::array kGradients = {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dmask, TensorId::dsinks};

/// The last row that is stored, of all results that have rows, and the last element of each gradient: as if nobody had
/// written it.
void leave_out_last_row(const Call& p, const Outputs& o) {
  std::array<std::int64_t, 3> last = {-1, -1, -1};
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) { last = {b, h, l}; });
  if (last[0] < 0) return;
  const auto unwritten = [](double, std::int64_t) { return std::nan(""); };
  for (const TensorId id : kGradients) {
    Index4 end{};
    each_of_gradient(p, o, id, [&](const Index4& at, double x) { return end = std::max(end, at), x; });
    each_of_gradient(p, o, id, [&](const Index4& at, double x) { return at == end ? std::nan("") : x; });
  }
  if (p.wants(Output::o)) each_in_row(o.out(), last[0], last[1], last[2], unwritten);
  for (const MutableTensor* result : {o.lse(), o.raw(), o.capped(), o.biased(), o.weights()}) {
    if (result) each_in_row(*result, last[0], last[1], last[2], unwritten);
  }
  if (o.present_state()) each_in_row(*o.present_state(), last[0], 0, 0, unwritten);
}

void round_to_bf16(const Call& p, const Outputs& o) {
  const auto rounded = [](double x, std::int64_t) { return static_cast<double>(bf16_to_float(to_bf16(x))); };
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    if (p.wants(Output::o)) each_in_row(o.out(), b, h, l, rounded);
    if (o.lse()) each_in_row(*o.lse(), b, h, l, rounded);
  });
  if (o.present_state()) each_element(*o.present_state(), [&](double x) { return rounded(x, 0); });
  for (const TensorId id : kGradients)
    each_of_gradient(p, o, id, [&](const Index4&, double x) { return rounded(x, 0); });
}

/// The first row of the run before stands in the first row of o, or of dq where that is not asked for, as far as it
/// reaches.
void keep_first_row(const Call& p, const Outputs& o) {
  thread_local std::vector<double> kept;
  const MutableTensor* rows = p.wants(Output::o) ? &o.out() : o.dq();
  bool first = rows != nullptr;
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    if (!first) return;
    first = false;
    std::vector<double> now;
    each_in_row(*rows, b, h, l, [&](double x, std::int64_t d) {
      now.push_back(x);
      return d < static_cast<std::int64_t>(kept.size()) ? kept[static_cast<std::size_t>(d)] : x;
    });
    kept = std::move(now);
  });
}

void zero_last_feature(const Call& p, const Outputs& o) {
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    if (!p.wants(Output::o)) return;
    each_in_row(o.out(), b, h, l, [&](double x, std::int64_t d) { return d + 1 == p.value_dim ? 0 : x; });
  });
  each_of_gradient(p, o, TensorId::dv, [&](const Index4& at, double x) { return at[3] + 1 == p.value_dim ? 0 : x; });
}

/// The last key of each sequence is hidden from every row, by blocks of one key; what the call's own blocks hide stays
/// so.
void hide_last_key(const Call& p, ChangedInputs& c) {
  if (!p.has_scores() || p.key_length == 0 || p.query_length == 0) return;
  const bool given = c.inputs.blocks() != nullptr;
  const std::int64_t rows = given ? c.inputs.blocks()->shape[2] : 1, columns = given ? p.blocks->columns : 1;
  c.blocks.resize(static_cast<std::size_t>(p.batch * p.query_heads * rows * p.key_length));
  auto entry = c.blocks.begin();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < p.key_length; ++j)
          *entry++ = j + 1 != p.key_count(b) && (!given || c.inputs.block(b, h, r, j / columns));
      }
    }
  }
  c.give_blocks({p.batch, p.query_heads, rows, p.key_length});
}

/// Blocks as large as hide_last_key gives them.
void split_blocks(Call& p) {
  if (!p.has_scores() || p.key_length == 0 || p.query_length == 0) return;
  p.blocks = BlockSpec{p.blocks ? p.blocks->rows : p.query_length, 1};
}

bool loses_last_key(const Call& p) {
  return p.page_size && (p.key_length + *p.page_size - 1) / *p.page_size % 256 == 0;
}

/// change(x, largest) becomes the maximum of each row: x is the row's own, `largest` that of its head.
template <class Change>
void change_maximum(const Call& p, const Outputs& o, Change change) {
  if (!o.has(TensorId::row_max)) return;
  const MutableTensor& max = o.at(TensorId::row_max);
  std::vector<double> largest(static_cast<std::size_t>(p.batch * p.query_heads), -kInfinity);
  const auto of_head = [&](std::int64_t b, std::int64_t h) -> double& {
    return largest[static_cast<std::size_t>(b * p.query_heads + h)];
  };
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    of_head(b, h) = std::max(of_head(b, h), load(max.data, max.dtype, max.offset(b, h, l, 0)));
  });
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    each_in_row(max, b, h, l, [&](double x, std::int64_t) { return change(x, of_head(b, h)); });
  });
}

constexpr std::array kMistakes = {
    Mistake{"softcap_dropped", "softcap is accepted and ignored (26)", [](Call& p) { p.softcap.reset(); }},
    Mistake{"scale_a_little_off", "the scale is a hundred-thousandth too large",
            [](Call& p) { p.scale = p.scale_value() * (1 + 1e-5); }},
    Mistake{"alibi_dropped", "ALiBi is accepted and ignored (26)", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::slopes); }},
    Mistake{"alibi_for_powers_of_two", "the slopes of 2^(-8i/n) for any head count", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.alibi || !p.alibi_slopes.empty()) return;
              for (std::int64_t h = 1; h <= p.query_heads; ++h) {
                c.slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(p.query_heads)));
              }
              c.give_slopes(p);
            }},
    Mistake{"slopes_of_batch_0", "every batch uses the first one's slopes (86)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.slopes_per_batch()) c.inputs.change(TensorId::slopes).strides[0] = 0;
            }},
    Mistake{"alibi_heads_reversed", "slopes given to the wrong heads", nullptr,
            [](const Call& p, ChangedInputs& c) {
              c.slopes = list_numbers(c.inputs.slopes());
              std::ranges::reverse(c.slopes);
              c.give_slopes(p);
            }},
    Mistake{"sink_of_minus_infinity_is_0", "a head without a sink (-inf) has one of 0 (83)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              c.sinks = list_numbers(c.inputs.sinks());
              for (double& sink : c.sinks) sink = sink == -kInfinity ? 0 : sink;
              c.give_sinks(p);
            }},
    Mistake{"sinks_dropped", "sinks are accepted and ignored (26)", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::sinks); }},
    Mistake{"sink_of_head_0", "every head uses the first head's sink", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.change(TensorId::sinks).strides[1] = 0; }},
    Mistake{"key_lengths_dropped", "key lengths are accepted and ignored (18)",
            [](Call& p) {
              if (p.lengths && !p.packed_sequences() && !p.page_size) {
                std::fill(p.lengths->key.begin(), p.lengths->key.end(), p.key_length);
              }
            }},
    Mistake{"query_lengths_dropped", "padding rows attend like any other",
            [](Call& p) {
              if (p.lengths && !p.packed_sequences() && !p.append) p.lengths->query.clear();
            }},
    Mistake{"anchor_ignores_lengths", "bottom-right anchored at Lk, not at the batch's length (18)",
            [](Call& p) {
              const std::int64_t offset = p.key_length - p.query_length;
              if (p.lengths && p.align == Align::bottom_right && offset > 0 && !p.segments) p.past = offset;
            }},
    Mistake{"segments_dropped", "documents see each other (26)", [](Call& p) { p.segments.reset(); }},
    Mistake{"prefix_dropped", "the prefix is accepted and ignored (26)", [](Call& p) { p.prefix = 0; }},
    Mistake{"causal_prefix_dropped", "a prefix that stays causal is accepted and ignored (84)",
            [](Call& p) {
              if (p.prefix_causal) p.prefix = 0;
            }},
    Mistake{"prefix_without_causal", "a prefix that stays causal is seen by everyone (85)",
            [](Call& p) { p.prefix_causal = false; }},
    Mistake{"gap_read_as_keys", "packed sequences end where the next one begins (87)",
            [](Call& p) {
              if (p.gap == 0 || !p.lengths || p.mask || p.blocks || p.dropout > 0) return;
              for (std::size_t b = 0; b + 1 < p.lengths->key.size(); ++b) {
                std::int64_t& length = p.lengths->key[b];
                length += p.gap;
                p.key_length = std::max(p.key_length, length);
              }
            }},
    Mistake{"prefix_off_by_one", "one key of the prefix too few",
            [](Call& p) { p.prefix = std::max<std::int64_t>(p.prefix - 1, 0); }},
    Mistake{"blocks_dropped", "the block mask is accepted and ignored (26)", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::blocks); }},
    Mistake{"blocks_of_head_0", "every head uses the first head's blocks", nullptr,
            [](const Call&, ChangedInputs& c) {
              for (const std::size_t axis : {0, 1}) c.inputs.change(TensorId::blocks).strides[axis] = 0;
            }},
    Mistake{"dropout_dropped", "dropout is accepted and ignored (26)", [](Call& p) { p.dropout = 0; }},
    Mistake{"dropout_of_another_seed", "keep decisions drawn from seed + 1",
            [](Call& p) {
              if (p.dropout > 0) ++p.dropout_seed;
            }},
    Mistake{"past_has_no_offset", "cached keys without their place on the diagonal (18)",
            [](Call& p) {
              if (!p.page_size && p.past_lengths.empty()) p.past = 0;
            }},
    Mistake{"largest_past_for_all", "every sequence has as many cached keys as the longest (95)",
            [](Call& p) { p.past_lengths.clear(); },
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::past_lengths); }},
    Mistake{"pages_in_order", "the page table is ignored", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!c.inputs.page_table()) return;
              ConstTensor& table = c.inputs.change(TensorId::page_table);
              c.pages.resize(static_cast<std::size_t>(p.batch * table.shape[3]));
              const auto pages = static_cast<std::int32_t>(c.inputs.k().shape[0]);
              for (std::size_t n = 0; pages > 0 && n < c.pages.size(); ++n)
                c.pages[n] = static_cast<std::int32_t>(n) % pages;
              table.data = c.pages.data();
              table.strides = {table.shape[3], 0, 0, 1};
            }},
    Mistake{"raw_after_cap", "raw scores are handed out capped (the ONNX evaluator's mode 0)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (!o.raw() || !p.softcap) return;
              each_element(*o.raw(), [&](double x) { return *p.softcap * std::tanh(x / *p.softcap); });
            }},
    Mistake{"biased_keeps_hidden", "biased scores of hidden keys are a large finite number", nullptr, nullptr,
            [](const Call&, const Outputs& o) {
              if (o.biased()) each_element(*o.biased(), [](double x) { return x == -kInfinity ? -1e4 : x; });
            }},
    Mistake{"bf16_truncates", "16-bit results are cut off, not rounded", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              // One ulp towards zero for half of them is what cutting off does on average.
              if (p.dtype != DType::bf16 || p.packed_sequences()) return;
              each_element(o.out(), [n = 0](double x) mutable { return ++n % 2 == 0 ? x * (1 - 0x1p-7) : x; });
            }},
    Mistake{"present_without_past", "present keys begin with zeros instead of the cache", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (!o.present_k()) return;
              MutableTensor cached = *o.present_k();
              cached.shape[2] = p.past;
              each_element(cached, [](double) { return 0.0; });
            }},
    Mistake{"causal_dropped", "causal is accepted and ignored (26)", [](Call& p) { p.causal = false; }},
    Mistake{"window_dropped", "a window is accepted and ignored (26)",
            [](Call& p) { p.window_left = p.window_right = Call::kUnbounded; }},
    Mistake{"window_a_key_short", "left = W shows W keys, with every option (21)",
            [](Call& p) {
              if (p.window_left != Call::kUnbounded && p.window_left > 0) --p.window_left;
            }},
    Mistake{"corner_swapped", "the diagonal at the other corner, with every option (15)",
            [](Call& p) {
              if (p.past == 0) p.align = p.align == Align::top_left ? Align::bottom_right : Align::top_left;
            }},
    Mistake{"mask_dropped", "the mask tensor is accepted and ignored, with every option (26)", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::mask); }},
    Mistake{"given_scale_dropped", "scale=... is accepted and dropped, with every option (26)",
            [](Call& p) { p.scale.reset(); }},
    Mistake{"packed_heads_share_keys", "packed sequences with grouped heads read the first key head alone (69)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.packed_sequences() && p.query_heads != p.key_heads) c.inputs.change(TensorId::k).strides[1] = 0;
            }},
    Mistake{"causal_lost_with_weights", "whoever asks for weights gets them without causal (71)",
            [](Call& p) { p.causal = p.causal && !p.wants(Output::weights); }},
    Mistake{"sink_by_key_head", "sinks are read by key heads (73)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              for (std::int64_t h = 0; c.inputs.sinks() && h < p.query_heads; ++h)
                c.sinks.push_back(c.inputs.sink(h / p.heads_per_group()));
              c.give_sinks(p);
            }},
    Mistake{"sink_capped", "the sink passes through the cap (74)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.softcap) return;
              c.sinks = list_numbers(c.inputs.sinks());
              for (double& sink : c.sinks) sink = *p.softcap * std::tanh(sink / *p.softcap);
              c.give_sinks(p);
            }},
    Mistake{"alibi_without_offset", "ALiBi's distances begin at the first key, whatever the corner (76)",
            [](Call& p) {
              const bool window = p.window_left != Call::kUnbounded || p.window_right != Call::kUnbounded;
              if (p.alibi && !p.causal && !window) p.align = Align::top_left;
            }},
    Mistake{"causal_by_fours", "in 16 bits the first four rows see four keys (77)",
            [](Call& p) {
              if (size_of(p.dtype) == 2 && p.causal) p.prefix = std::max(p.prefix, std::min<std::int64_t>(4, p.key_length));
            }},
    Mistake{"corner_of_padded_lengths", "bottom-right of as many queries as keys has no offset, whatever the lengths (79)",
            [](Call& p) {
              if (p.lengths && p.query_length == p.key_length) p.align = Align::top_left;
            }},
    Mistake{"last_page_dropped", "a multiple of 256 pages loses the last key (81)",
            [](Call& p) {
              if (loses_last_key(p)) split_blocks(p);
            },
            [](const Call& p, ChangedInputs& c) {
              if (loses_last_key(p)) hide_last_key(p, c);
            }},
    Mistake{"window_lost_in_paged_decode", "one query on pages sees beyond its window (82)",
            [](Call& p) {
              if (p.page_size && p.query_length == 1) p.window_left = p.window_right = Call::kUnbounded;
            }},
    Mistake{"dense_lse", "lse is written one number after the other, whatever its strides (88)", nullptr, nullptr, nullptr,
            [](Outputs& o) { take_as_dense(o.change(TensorId::lse)); }},
    Mistake{"dense_weights", "weights are written one row after the other, whatever their strides (89)", nullptr, nullptr,
            nullptr, [](Outputs& o) { take_as_dense(o.change(TensorId::weights)); }},
    Mistake{"dense_present", "present keys and values are written densely, whatever their strides (90)", nullptr, nullptr,
            nullptr,
            [](Outputs& o) {
              for (const TensorId id : {TensorId::present_k, TensorId::present_v, TensorId::present_state})
                take_as_dense(o.change(id));
            }},
    Mistake{"dense_past", "cached keys are read as if they lay densely (91)", nullptr,
            [](const Call&, ChangedInputs& c) { take_as_dense(c, {TensorId::past_k, TensorId::past_v}); }},
    Mistake{"dense_page_table", "a row of the page table is as long as it has pages (92)", nullptr,
            [](const Call&, ChangedInputs& c) { take_as_dense(c, {TensorId::page_table}); }},
    Mistake{"dense_numbers_of_heads", "slopes and sinks are read one after the other (93)", nullptr,
            [](const Call&, ChangedInputs& c) { take_as_dense(c, {TensorId::slopes, TensorId::sinks}); }},
    Mistake{"dense_blocks", "a block mask is read as if it lay densely (94)", nullptr,
            [](const Call&, ChangedInputs& c) { take_as_dense(c, {TensorId::blocks}); }},
    Mistake{"dense_gates", "decay, beta and state are read as if they lay densely", nullptr,
            [](const Call&, ChangedInputs& c) { take_as_dense(c, {TensorId::decay, TensorId::beta, TensorId::state}); }},
    Mistake{"values_in_type_of_keys", "values are read in the keys' type (96)", nullptr,
            [](const Call&, ChangedInputs& c) {
              read_in_type_of(c, TensorId::v, c.inputs.k().dtype);
              read_in_type_of(c, TensorId::past_v, c.inputs.k().dtype);
            }},
    Mistake{"cached_in_type_of_new", "cached keys and values are read in the new ones' types (97)", nullptr,
            [](const Call&, ChangedInputs& c) {
              read_in_type_of(c, TensorId::past_k, c.inputs.k().dtype);
              read_in_type_of(c, TensorId::past_v, c.inputs.v().dtype);
            }},
    Mistake{"result_in_type_of_call", "the result passes through the call's type on its way to a wider one (98)", nullptr,
            nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.packed_sequences()) return;
              each_element(o.out(), [&](double x) {
                double held = 0;
                store(&held, p.dtype, 0, x);
                return load(&held, p.dtype, 0);
              });
            }},
    Mistake{"max_before_scale", "the maximum is that of scores before they are scaled (137)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.scale_value() != 0) change_maximum(p, o, [&](double x, double) { return x / p.scale_value(); });
            }},
    Mistake{"max_of_head", "the maximum of a row is that of all rows of its head (138)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) { change_maximum(p, o, [](double, double largest) { return largest; }); }},
    Mistake{"max_in_base_2", "the maximum is in units of log 2 (139)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              change_maximum(p, o, [](double x, double) { return x * std::numbers::log2e; });
            }},
    Mistake{"sum_of_divided_weights", "the sum is that of the divided weights, 1", nullptr, nullptr,
            [](const Call&, const Outputs& o) {
              if (o.has(TensorId::row_sum)) each_element(o.at(TensorId::row_sum), [](double x) { return x > 0 ? 1 : x; });
            }},
    Mistake{"last_key_dropped", "the last key is never seen", split_blocks, hide_last_key},
    Mistake{"last_row_left_out", "the last row is never written", nullptr, nullptr, leave_out_last_row},
    Mistake{"last_feature_zero", "the last feature of the values is never added", nullptr, nullptr, zero_last_feature},
    Mistake{"rounded_to_bf16", "results pass through bf16", nullptr, nullptr, round_to_bf16},
    Mistake{"row_of_the_run_before", "the first row is that of the run before", nullptr, nullptr, keep_first_row},
};

/// Those above, and those of other files.
const std::vector<Mistake>& all_mistakes() {
  static const std::vector<Mistake> all = [] {
    std::vector<Mistake> list(kMistakes.begin(), kMistakes.end());
    for (const std::span<const Mistake> more :
         {gradient_mistakes(), mask_mistakes(), merge_mistakes(), operand_mistakes(), scale_mistakes(),
          selection_mistakes(), state_mistakes(), storage_mistakes()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

class TamperedPlan : public PlanAround {
 public:
  TamperedPlan(const Mistake& mistake, const Call& asked, const Call& given, std::unique_ptr<Plan> plan)
      : PlanAround(std::move(plan)), mistake_(mistake), asked_(asked), given_(given) {}

  void upload(const Inputs& inputs) override {
    take_lengths(asked_, inputs);
    changed_ = {};
    changed_.inputs = inputs;
    if (mistake_.change_inputs) mistake_.change_inputs(asked_, changed_);
    inner_->upload(changed_.inputs);
  }
  void download(const Outputs& outputs) override {
    Outputs changed = outputs;
    // Gradients of what the call has lost are never written.
    for (const TensorRow& row : tensor_rows()) {
      if (is_output(row.id) && !has_tensor(given_, row.id)) changed.remove(row.id);
    }
    if (mistake_.change_views) mistake_.change_views(changed);
    inner_->download(changed);
    if (mistake_.change_outputs) mistake_.change_outputs(asked_, outputs);
  }

 private:
  const Mistake& mistake_;
  Call asked_;  ///< with the lengths of the last upload
  const Call given_;
  ChangedInputs changed_;
};

class TamperedBackend : public BackendAround {
 public:
  TamperedBackend(std::size_t mistake, const Context& /*context*/)
      : BackendAround({std::string(all_mistakes()[mistake].name), "deliberately wrong", "CPU"}, make_example()),
        mistake_(all_mistakes()[mistake]) {}
  std::unique_ptr<Plan> prepare(const Call& p) override {
    Call changed = p;
    if (mistake_.change_problem) mistake_.change_problem(changed);
    return std::make_unique<TamperedPlan>(mistake_, p, changed, inner_->prepare(changed));
  }

 private:
  const Mistake& mistake_;
};

class WrongWhere : public BackendAround {
 public:
  explicit WrongWhere(std::function<bool(const Call&)> such)
      : BackendAround({"wrong_where", "deliberately wrong", "CPU"}, make_example()), such_(std::move(such)) {
    for (const BackendEntry& entry : tampered_backends()) {
      if (entry.name == "last_row_left_out") wrong_ = entry.make({1, ""});
    }
  }
  std::unique_ptr<Plan> prepare(const Call& p) override { return (such_(p) ? wrong_ : inner_)->prepare(p); }

 private:
  std::function<bool(const Call&)> such_;
  std::unique_ptr<Backend> wrong_;
};

}  // namespace

std::span<const BackendEntry> tampered_backends() {
  static const auto entries = entries_of<TamperedBackend, std::size_t>(all_mistakes());
  return entries;
}

std::unique_ptr<Backend> wrong_where(std::function<bool(const Call&)> such) {
  return std::make_unique<WrongWhere>(std::move(such));
}

std::string_view tampered_description(std::string_view name) {
  const auto found = std::ranges::find(all_mistakes(), name, &Mistake::name);
  return found == all_mistakes().end() ? "" : found->text;
}

}  // namespace attest::faulty

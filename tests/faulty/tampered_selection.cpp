// Mistakes of values that lie in the keys, and of keys that are listed by number.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// Queries for which `is_lost(b, h, i)` holds become NaN, and their results with them.
template <class Lost>
void lose_rows(const Call& p, ChangedInputs& c, const Lost& is_lost) {
  const ConstTensor q = c.inputs.q();
  c.give_rows(p, TensorId::q, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
    return is_lost(b, h, i) ? std::nan("") : load(q.data, q.dtype, q.offset(b, h, i, d));
  });
}

std::int32_t entry(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i,
                   std::int64_t n) {
  return inputs.indices()->as<const std::int32_t>()(b, h / p.heads_per_group(), i, n);
}

/// The lists with other entries: change(number, whether it is the last of its list).
template <class Change>
void change_lists(const Call& p, ChangedInputs& c, const Change& change) {
  if (!p.select) return;
  const ConstTensor lists = *c.inputs.indices();
  const Index4 n = lists.shape;
  c.pages.clear();
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t at) {
    const std::int32_t number = i < p.stored_queries(b) ? lists.as<const std::int32_t>()(b, h, i, at) : -1;
    c.pages.push_back(change(number, at + 1 == n[3]));
  });
  c.inputs.set(TensorId::indices, {c.pages.data(), DType::i32, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"latent_scale_of_storage", "latent keys are scaled by the width of their rows, not as the call says (140)",
            [](Call& p) {
              if (p.latent) p.scale.reset();
            }},
    Mistake{"latent_hidden_split", "a run of 256 keys that a query doesn't see at all makes its row NaN (141)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.latent || p.key_length <= 256 || !p.causal) return;
              lose_rows(p, c, [&](std::int64_t b, std::int64_t, std::int64_t i) {
                return i < p.query_count(b) && p.key_count(b) > 256 && i + p.diagonal_offset(b) < 256;
              });
            }},
    Mistake{"select_nothing_first", "a list that begins with 16 empty entries makes its row NaN (142)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.select || p.select->count <= 16) return;
              lose_rows(p, c, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
                bool empty = true;
                for (std::int64_t n = 0; n < 16; ++n) empty = empty && entry(p, c.inputs, b, h, i, n) < 0;
                return empty;
              });
            }},
    Mistake{"select_one_is_all", "a list of one entry shows every key (143)",
            [](Call& p) {
              if (p.select && p.select->count == 1) p.select.reset();
            },
            [](const Call& p, ChangedInputs& c) {
              if (!p.select) c.inputs.remove(TensorId::indices);
            }},
    Mistake{"small_pages_of_unequal_dims", "where dimensions differ, pages of other than 128 rows are read in order (144)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!c.inputs.page_table() || p.key_dim == p.value_dim || *p.page_size == 128) return;
              ConstTensor& table = c.inputs.change(TensorId::page_table);
              c.pages.resize(static_cast<std::size_t>(p.batch * table.shape[3]));
              const auto pages = static_cast<std::int32_t>(c.inputs.k().shape[0]);
              for (std::size_t n = 0; pages > 0 && n < c.pages.size(); ++n)
                c.pages[n] = static_cast<std::int32_t>(n) % pages;
              table.data = c.pages.data();
              table.strides = {table.shape[3], 0, 0, 1};
            }},
    Mistake{"latent_values_behind", "latent values are taken from the last columns of the keys", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.latent || p.latent_apart) return;
              for (const TensorId id : {TensorId::v, TensorId::past_v}) {
                ConstTensor& v = c.inputs.change(id);
                if (!v.data) continue;
                const std::int64_t behind = (p.key_dim - p.value_dim) * v.strides[3];
                v.data = static_cast<const std::byte*>(v.data) + behind * static_cast<std::int64_t>(size_of(v.dtype));
              }
            }},
    Mistake{"latent_rope_dropped", "scores lack the columns that lie in tensors of their own", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.latent_apart) c.give_rows(p, TensorId::q_rope, [](auto...) { return 0; });
            }},
    Mistake{"latent_rope_of_store_0", "columns of keys in a tensor of their own are those of the first sequence or page", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.latent_apart) c.inputs.change(TensorId::k_rope).strides[0] = 0;
            }},
    Mistake{"select_dropped", "lists of keys are ignored", [](Call& p) { p.select.reset(); },
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::indices); }},
    Mistake{"select_of_head_0", "every head has the list of the first", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.select) c.inputs.change(TensorId::indices).strides[1] = 0;
            }},
    Mistake{"select_first_block", "every listed block is the first one", nullptr,
            [](const Call& p, ChangedInputs& c) {
              change_lists(p, c, [](std::int32_t number, bool) { return std::min<std::int32_t>(number, 0); });
            }},
    Mistake{"select_last_entry_dropped", "the last entry of a list is not read", nullptr,
            [](const Call& p, ChangedInputs& c) {
              change_lists(p, c, [](std::int32_t number, bool is_last) { return is_last ? -1 : number; });
            }},
};
// clang-format on

}  // namespace

std::span<const Mistake> selection_mistakes() { return kMistakes; }

}  // namespace attest::faulty

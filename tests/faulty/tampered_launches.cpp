#include "tests/faulty/tampered_launches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/call/launch.h"
#include "reference/call/tensor_table.h"
#include "tests/faulty/around.h"

namespace attest::faulty {
namespace {

enum class Wrong : std::uint8_t {
  // of lengths that are data
  first_lengths,
  first_table,
  longest_lengths,
  empty_as_one,
  // of appended keys
  rows_of_longest,
  row_before,
  read_before,
  next_row,
  other_page,
  next_sequence,
  slot_of_padding,
  not_rounded,
  last_slot,
  not_rotated,
  next_head,
  swapped,
  row_too_many,
  count
};

struct Description {
  std::string_view name, text;
};
constexpr std::array<Description, static_cast<std::size_t>(Wrong::count)> kDescriptions = {{
    {"lengths_of_first_run", "a plan uses the lengths of its first run in all others (163)"},
    {"table_of_first_run", "a plan uses the page table of its first run in all others (164)"},
    {"lengths_of_plan", "each sequence has as many keys as the longest may have (165)"},
    {"padding_of_one_key", "an empty sequence has one query and one key (167)"},
    {"appends_behind_longest", "new rows begin where as many as the longest sequence brings would (166)"},
    {"appends_row_of_run_before", "the last new row is that of the run before (168)"},
    {"appends_after_reading", "queries read the cache before the new rows are in it (169)"},
    {"appends_one_row_off", "new rows go one row too far (170)"},
    {"appends_by_other_page_size", "the slots of new rows are taken apart by another page size (171)"},
    {"appends_to_next_sequence", "new rows go to the sequence behind (172)"},
    {"appends_padding_to_slot_0", "a sequence without queries writes to the first slot (173)"},
    {"attends_unrounded_new_keys", "queries see the new keys before they are rounded to the type of the cache (174)"},
    {"appends_padding_to_last_slot", "padding has slot -1, and writes to the last one (175)"},
    {"appends_unrotated_keys", "new keys are cached as they came where the cache is of rotated ones (197)"},
    {"appends_to_next_head", "new rows go to the head behind"},
    {"appends_keys_as_values", "new keys are taken for the new values, where they have the same shape"},
    {"appends_a_row_too_many", "the row behind the new ones is written, too"},
}};

/// A row of the cache.
struct Slot {
  std::int64_t store, row;
};

/// A dense copy of k or v that the plan writes into, in the type of the cache, and the same as float64.
class Copy {
 public:
  explicit Copy(const ConstTensor& from) : shape_(from.shape), dtype_(from.dtype) {
    const auto count = static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2] * shape_[3]);
    const std::size_t size = size_of(dtype_);
    bytes_.resize(count * size);
    wide_.resize(count);
    std::size_t at = 0;
    each_index(shape_, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t place = from.offset(b, h, l, d);
      std::memcpy(bytes_.data() + at * size,
                  static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(place) * size, size);
      wide_[at++] = load(from.data, dtype_, place);
    });
  }
  ConstTensor view(bool rounded) const {
    const Index4 strides = {shape_[1] * shape_[2] * shape_[3], shape_[2] * shape_[3], shape_[3], 1};
    if (rounded) return {bytes_.data(), dtype_, shape_, strides};
    return {wide_.data(), DType::f64, shape_, strides};
  }
  const Index4& shape() const { return shape_; }
  void set(Slot to, std::int64_t h, std::int64_t d, double value) {
    const std::int64_t at = ((to.store * shape_[1] + h) * shape_[2] + to.row) * shape_[3] + d;
    store(bytes_.data(), dtype_, at, value);
    wide_[static_cast<std::size_t>(at)] = value;
  }
  void give(const MutableTensor& to) const {
    const std::size_t size = size_of(dtype_);
    std::size_t at = 0;
    each_index(shape_, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      std::memcpy(static_cast<std::byte*>(to.data) + static_cast<std::size_t>(to.offset(b, h, l, d)) * size,
                  bytes_.data() + at++ * size, size);
    });
  }

 private:
  Index4 shape_;
  DType dtype_;
  std::vector<std::byte> bytes_;
  std::vector<double> wide_;
};

/// The call without appending, which this plan does instead, wrongly.
Call attending(Call call) {
  call.append = false;
  call.tensor(TensorId::new_k) = call.tensor(TensorId::new_v) = {};
  return call;
}

class LaunchPlan : public PlanAround {
 public:
  LaunchPlan(Wrong wrong, const Call& call, Backend& backend)
      : PlanAround(backend.prepare(attending(call))), wrong_(wrong), plan_(call) {}

  void upload(const Inputs& inputs) override {
    given_ = inputs;
    now_ = inputs;
    run_ = launched(plan_, inputs);
    if (plan_.append) {
      cache_.clear();
      for (const TensorId id : {TensorId::k, TensorId::v}) cache_.emplace_back(inputs.at(id));
      const bool rounded = wrong_ != Wrong::not_rounded;
      now_.set(TensorId::k, cache_[0].view(rounded));
      now_.set(TensorId::v, cache_[1].view(rounded));
      for (const TensorId id : {TensorId::new_k, TensorId::new_v}) now_.remove(id);
    }
    if (plan_.dynamic) change_launch();
    inner_->upload(now_);
  }

  void run() override {
    if (plan_.append && wrong_ != Wrong::read_before) append();
    inner_->run();
    if (plan_.append && wrong_ == Wrong::read_before) append();
  }

  void download(const Outputs& outputs) override {
    Outputs others = outputs;
    if (plan_.append) {
      cache_[0].give(*outputs.cache_k());
      cache_[1].give(*outputs.cache_v());
      for (const TensorId id : {TensorId::cache_k, TensorId::cache_v}) others.remove(id);
    }
    inner_->download(others);
  }

 private:
  /// Entries of the table that are there.
  std::int64_t pages_of(std::int64_t b) const {
    std::int64_t n = 0;
    while (n < given_.page_table()->shape[3] && given_.page(b, n) >= 0) ++n;
    return n;
  }

  /// Lengths that the storage of this run has room for: what is wrong is a number, not a crash.
  void set_lengths(std::int64_t b, std::int64_t queries, std::int64_t keys) {
    const std::int64_t room = given_.page_table() ? pages_of(b) * given_.rows_of_page() : plan_.key_length;
    keys = std::min(keys, room);
    if (plan_.packed_sequences()) queries = run_.query_count(b);
    if (plan_.append) {
      queries = run_.query_count(b);
      keys = std::max(keys, queries);
    }
    if (plan_.packed_sequences() && !plan_.page_size) keys = run_.key_count(b);
    lengths_[0][static_cast<std::size_t>(b)] = static_cast<std::int32_t>(queries);
    lengths_[1][static_cast<std::size_t>(b)] = static_cast<std::int32_t>(keys);
  }

  void change_launch() {
    const auto batch = static_cast<std::size_t>(plan_.batch);
    for (std::vector<std::int32_t>& list : lengths_) list.resize(batch);
    if (!first_) first_ = run_;
    for (std::int64_t b = 0; b < plan_.batch; ++b) {
      std::int64_t queries = run_.query_count(b), keys = run_.key_count(b);
      if (wrong_ == Wrong::first_lengths) {
        queries = first_->query_count(b);
        keys = first_->key_count(b);
      }
      if (wrong_ == Wrong::longest_lengths) keys = plan_.key_length;
      if (wrong_ == Wrong::empty_as_one && keys == 0) queries = keys = 1;
      set_lengths(b, queries, keys);
    }
    const auto give = [&](TensorId id, const std::vector<std::int32_t>& list) {
      now_.set(id, {list.data(), DType::i32, {plan_.batch, 1, 1, 1}, {1, 1, 1, 1}});
    };
    give(TensorId::query_lengths, lengths_[0]);
    give(TensorId::key_lengths, lengths_[1]);
    if (wrong_ == Wrong::first_table && given_.page_table()) keep_table();
  }

  /// Entries of the first run, where both runs have one.
  void keep_table() {
    const ConstTensor& table = *given_.page_table();
    const std::int64_t pages = table.shape[3];
    std::vector<std::int32_t> entries;
    for (std::int64_t b = 0; b < plan_.batch; ++b) {
      for (std::int64_t n = 0; n < pages; ++n) entries.push_back(static_cast<std::int32_t>(given_.page(b, n)));
    }
    if (first_table_.empty()) first_table_ = entries;
    for (std::size_t n = 0; n < entries.size(); ++n) {
      if (first_table_[n] >= 0 && entries[n] >= 0) entries[n] = first_table_[n];
    }
    table_ = std::move(entries);
    now_.set(TensorId::page_table, {table_.data(), DType::i32, table.shape, {pages, pages, pages, 1}});
  }

  std::optional<Slot> slot_of(std::int64_t b, std::int64_t j) const {
    if (j < 0 || j >= plan_.key_length) return std::nullopt;
    if (!given_.page_table()) return Slot{b, j};
    const std::int64_t rows = given_.rows_of_page(), page = given_.page(b, j / rows);
    if (page < 0) return std::nullopt;
    return Slot{page, j % rows};
  }

  /// Where row i of sequence b goes.
  std::optional<Slot> wrong_slot(std::int64_t b, std::int64_t i) const {
    const std::int64_t fresh = run_.query_count(b), key = run_.key_count(b) - fresh + i;
    switch (wrong_) {
      case Wrong::rows_of_longest: return slot_of(b, run_.key_count(b) - plan_.query_length + i);
      case Wrong::next_row: return slot_of(b, key + 1);
      case Wrong::next_sequence: return slot_of((b + 1) % plan_.batch, key);
      case Wrong::other_page: {
        std::optional<Slot> slot = slot_of(b, key);
        if (!given_.page_table() || !slot) return slot;
        const std::int64_t rows = given_.rows_of_page(), number = slot->store * rows + slot->row;
        return Slot{number / (rows + 1), std::min(number % (rows + 1), rows - 1)};
      }
      default: return slot_of(b, key);
    }
  }

  void write(std::optional<Slot> to, std::int64_t b, std::int64_t i) {
    if (!to) return;
    for (std::size_t n = 0; n < cache_.size(); ++n) {
      Copy& cache = cache_[n];
      const bool swaps = wrong_ == Wrong::swapped && cache_[0].shape() == cache_[1].shape();
      const ConstTensor& from = (n == 0) != swaps ? given_.new_k() : given_.new_v();
      const std::int64_t heads = cache.shape()[1], dim = cache.shape()[3];
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t head = wrong_ == Wrong::next_head ? (h + 1) % heads : h;
        for (std::int64_t d = 0; d < dim; ++d)
          cache.set(*to, head, d, load(from.data, from.dtype, from.offset(b, h, i, d)));
      }
    }
  }
  /// A row of another number than any that is drawn.
  void write_padding(std::optional<Slot> to) {
    if (!to) return;
    for (Copy& cache : cache_) {
      if (to->store >= cache.shape()[0] || to->row < 0) continue;
      for (std::int64_t h = 0; h < cache.shape()[1]; ++h) {
        for (std::int64_t d = 0; d < cache.shape()[3]; ++d) cache.set(*to, h, d, 0.25);
      }
    }
  }

  void append() {
    for (std::int64_t b = 0; b < plan_.batch; ++b) {
      const std::int64_t fresh = run_.query_count(b);
      for (std::int64_t i = 0; i < fresh; ++i) write(wrong_slot(b, i), b, i);
      if (wrong_ == Wrong::row_too_many && fresh > 0) write(slot_of(b, run_.key_count(b)), b, fresh - 1);
      const Index4& n = cache_[0].shape();
      const bool pads = fresh < plan_.query_length;
      if (wrong_ == Wrong::last_slot && pads && n[0] > 0) write_padding(Slot{n[0] - 1, n[2] - 1});
      if (wrong_ == Wrong::slot_of_padding && fresh == 0 && n[0] > 0) write_padding(Slot{0, 0});
    }
    if (wrong_ == Wrong::row_before) give_row_of_run_before();
  }

  /// The last row of the last sequence that has one.
  void give_row_of_run_before() {
    std::int64_t b = plan_.batch - 1;
    while (b >= 0 && run_.query_count(b) == 0) --b;
    if (b < 0) return;
    const std::int64_t i = run_.query_count(b) - 1;
    const std::optional<Slot> slot = slot_of(b, run_.key_count(b) - 1);
    std::vector<double> row;
    for (const ConstTensor* from : {&given_.new_k(), &given_.new_v()}) {
      for (std::int64_t h = 0; h < from->shape[1]; ++h) {
        for (std::int64_t d = 0; d < from->shape[3]; ++d)
          row.push_back(load(from->data, from->dtype, from->offset(b, h, i, d)));
      }
    }
    std::swap(row, last_row_);
    for (std::size_t n = 0, at = 0; n < cache_.size() && !row.empty() && slot; ++n) {
      for (std::int64_t h = 0; h < cache_[n].shape()[1]; ++h) {
        for (std::int64_t d = 0; d < cache_[n].shape()[3]; ++d) cache_[n].set(*slot, h, d, row[at++]);
      }
    }
  }

  const Wrong wrong_;
  const Call plan_;
  Call run_;  ///< with the lengths of this run
  std::optional<Call> first_;
  Inputs given_{}, now_{};
  std::vector<Copy> cache_;  ///< of keys and of values
  std::array<std::vector<std::int32_t>, 2> lengths_;
  std::vector<std::int32_t> first_table_, table_;
  std::vector<double> last_row_;
};

class LaunchBackend : public BackendAround {
 public:
  LaunchBackend(Wrong wrong, const Context& /*context*/)
      : BackendAround({std::string(kDescriptions[static_cast<std::size_t>(wrong)].name), "deliberately wrong", "CPU"},
                      make_example()),
        wrong_(wrong) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<LaunchPlan>(wrong_, call, *inner_);
  }

 private:
  const Wrong wrong_;
};

}  // namespace

std::span<const BackendEntry> launch_backends() {
  static const auto entries = entries_of<LaunchBackend, Wrong>(kDescriptions);
  return entries;
}

std::string_view launch_description(std::string_view name) {
  const auto* const found = std::ranges::find(kDescriptions, name, &Description::name);
  return found == kDescriptions.end() ? "" : found->text;
}

}  // namespace attest::faulty

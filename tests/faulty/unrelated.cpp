#include "tests/faulty/unrelated.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "reference/call/tensor_table.h"
#include "tests/faulty/around.h"

namespace attest::faulty {
namespace {

constexpr UnrelatedBackend kBackends[] = {
    {"honest_relations", "", "batch=2 heads=2 seq=4x9 dim=4 causal align=bottom-right"},
    {"later_runs_drift", "repeat", "seq=5 dim=4", true},
    {"threads_share_a_sum", "threads", "seq=5 dim=4", true},
    {"batch_1_reads_batch_0", "batch", "batch=2 seq=5 dim=4", true},
    {"heads_share_a_scale", "head", "heads=3 seq=5 dim=4", true},
    {"decode_drops_last_key", "decode", "heads=2 seq=5x12 dim=4 causal align=bottom-right"},
    {"chunk_restarts_rows", "chunks", "seq=9 dim=4 causal"},
    {"packed_rows_move_on", "packing", "batch=2 seq=6 dim=4 lengths=q:6,4/k:6,4"},
    {"pages_in_pool_order", "pages", "seq=2x40 dim=4 paged=16"},
    {"pages_end_early", "paging", "seq=3x20 dim=4"},
    {"first_key_counts_more", "key_order", "seq=4x10 dim=4"},
    {"lse_of_other_base", "key_splits", "seq=4x30 dim=4 out=o,lse"},
};

class UnrelatedPlan : public PlanAround {
 public:
  UnrelatedPlan(std::string_view name, Call call, int threads, std::unique_ptr<Plan> inner)
      : PlanAround(std::move(inner)), name_(name), call_(std::move(call)), threads_(threads) {}

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    if (name_ == "pages_in_pool_order" && inputs.page_table()) {
      // Each sequence takes the next pages as they lie.
      const ConstTensor& table = inputs.at(TensorId::page_table);
      pages_.assign(static_cast<std::size_t>(table.shape[0] * table.shape[3]), 0);
      for (std::size_t n = 0; n < pages_.size(); ++n) pages_[n] = static_cast<std::int32_t>(n);
      ConstTensor& own = inputs_.change(TensorId::page_table);
      own.data = pages_.data();
      own.strides = {table.shape[3], table.shape[3], table.shape[3], 1};
    }
    PlanAround::upload(inputs_);
  }

  void run() override {
    ++runs_;
    PlanAround::run();
  }

  void download(const Outputs& outputs) override {
    PlanAround::download(outputs);
    const Call& p = call_;
    const bool moves_a_bit =
        (name_ == "later_runs_drift" && runs_ > 1) || (name_ == "threads_share_a_sum" && threads_ > 1) ||
        (name_ == "batch_1_reads_batch_0" && p.batch > 1) || (name_ == "heads_share_a_scale" && p.query_heads > 1);
    if (moves_a_bit) {
      change(outputs.out(), p.batch - 1, p.query_heads - 1, 0,
             [](double o) { return std::nextafter(static_cast<float>(o), 9.0F); });
    }
    const auto twice = [](double o) { return 2 * o; };
    if (name_ == "chunk_restarts_rows" && p.query_length != p.key_length) change(outputs.out(), 0, 0, 0, twice);
    if (name_ == "packed_rows_move_on" && p.packed_sequences()) change(outputs.out(), 1, 0, 3, twice);
    if (name_ == "first_key_counts_more") {
      const ConstTensor& v = inputs_.v();
      const double first = load(v.data, v.dtype, v.offset(0, 0, 0, 0));
      change(outputs.out(), 0, 0, 0, [&](double o) { return o + first / 8; });
    }
    if (name_ == "lse_of_other_base" && outputs.lse()) {
      for (std::int64_t i = 0; i < p.query_length; ++i) change(*outputs.lse(), 0, 0, i, [](double l) { return l / 3; });
    }
  }

 private:
  template <class Change>
  static void change(const MutableTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, const Change& change) {
    const std::int64_t at = t.offset(b, h, l, 0);
    store(t.data, t.dtype, at, change(load(t.data, t.dtype, at)));
  }

  const std::string name_;
  const Call call_;
  const int threads_;
  int runs_ = 0;
  Inputs inputs_;
  std::vector<std::int32_t> pages_;
};

class Unrelated : public BackendAround {
 public:
  Unrelated(std::string_view name, int threads)
      : BackendAround({std::string(name), "example with a mistake", "CPU"}, make_example()),
        name_(name),
        threads_(threads) {}

  std::unique_ptr<Plan> prepare(const Call& call) override {
    Call own = call;
    const bool drops =
        (name_ == "decode_drops_last_key" && call.query_length == 1) || (name_ == "pages_end_early" && call.page_size);
    if (drops) {
      LengthSpec lengths = call.lengths.value_or(LengthSpec());
      lengths.key.clear();
      for (std::int64_t b = 0; b < call.batch; ++b)
        lengths.key.push_back(std::max<std::int64_t>(call.key_count(b) - 1, 0));
      own.lengths = lengths;
    }
    return std::make_unique<UnrelatedPlan>(name_, call, threads_, inner_->prepare(own));
  }

 private:
  const std::string name_;
  const int threads_;
};

}  // namespace

std::span<const UnrelatedBackend> unrelated_backends() { return kBackends; }

std::unique_ptr<Backend> make_unrelated(std::string_view name, int threads) {
  return std::make_unique<Unrelated>(name, threads);
}

}  // namespace attest::faulty

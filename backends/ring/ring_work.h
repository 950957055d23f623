// Keys and values go round: each rank attends with its queries to the part that it has, while that part goes on to the
// next rank and another comes in.
#pragma once

#include "backends/ring/work.h"

namespace attest::ring {

template <class Real>
class RingWork : public WorkOf<Real> {
 public:
  RingWork(Scheme scheme, const Call& call, const Group& group, int threads)
      : WorkOf<Real>(scheme, call, group, threads), steps_(steps_of(scheme, call, group.size)) {
    // Two parts are under way at most: one that is computed with and sent on, one that comes in.
    const int needed = std::min(group.size - 1, 2);
    std::size_t largest = 0;
    for (int rank = 0; rank < group.size; ++rank) {
      for (const RingStep& step : steps_) largest = std::max(largest, bytes_of_step(step, rank));
    }
    for (int n = 0; n < needed; ++n) buffers_[n].resize(largest);
  }

  std::size_t bytes() const override { return WorkOf<Real>::bytes() + buffers_[0].size() + buffers_[1].size(); }

 protected:
  void attend() override {
    this->attention_.begin();
    for (const RingStep& step : steps_) go_round(step);
    this->attention_.finish();
  }

 private:
  /// Rows of keys of a step, all heads of it, in the part of a rank.
  std::int64_t rows_of_step(const RingStep& step, int rank) const {
    return (step.batches.last - step.batches.first) * (step.groups.last - step.groups.first) *
           length_of(this->local_.shard(rank).keys);
  }
  std::size_t key_bytes(const RingStep& step, int rank) const {
    return static_cast<std::size_t>(rows_of_step(step, rank) * this->call_.key_dim) * size_of(this->call_.dtype);
  }
  std::size_t bytes_of_step(const RingStep& step, int rank) const {
    return key_bytes(step, rank) +
           static_cast<std::size_t>(rows_of_step(step, rank) * this->call_.value_dim) * size_of(this->call_.dtype);
  }

  void go_round(const RingStep& step) {
    const int rank = this->transport_.rank(), ranks = this->transport_.size();
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    const std::int64_t heads_before = step.batches.first * this->call_.key_heads + step.groups.first;
    const std::int64_t rows_before = heads_before * length_of(this->local_.shard().keys);
    const auto width = static_cast<std::int64_t>(size_of(this->call_.dtype));
    const std::byte* k = this->local_.k.data() + rows_before * this->call_.key_dim * width;
    const std::byte* v = this->local_.v.data() + rows_before * this->call_.value_dim * width;
    for (int turn = 0; turn < ranks; ++turn) {
      const int owner = (rank - turn + ranks) % ranks, owner_of_next = (owner - 1 + ranks) % ranks;
      std::vector<std::byte>& incoming = buffers_[turn % 2];
      if (turn + 1 < ranks) {
        // Keys of the next part, then its values.
        const std::size_t keys = key_bytes(step, owner_of_next), all = bytes_of_step(step, owner_of_next);
        this->transport_.receive(before, std::span(incoming).first(keys));
        this->transport_.receive(before, std::span(incoming).subspan(keys, all - keys));
        this->transport_.send(next, {k, key_bytes(step, owner)});
        this->transport_.send(next, {v, bytes_of_step(step, owner) - key_bytes(step, owner)});
      }
      this->attention_.attend({k, v, this->local_.shard(owner).keys, step.batches, step.groups},
                              [&] { this->transport_.progress(); });
      this->transport_.wait();
      k = incoming.data();
      v = incoming.data() + key_bytes(step, owner_of_next);
    }
  }

  const std::vector<RingStep> steps_;
  std::array<std::vector<std::byte>, 2> buffers_;
};

}  // namespace attest::ring

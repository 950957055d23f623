// Keys and values go round: each rank attends with its queries to the part that it has, while that part goes on to the
// next rank and another comes in.
#pragma once

#include "backends/ring/work.h"

namespace attest::ring {

template <class Real>
class RingWork : public WorkOf<Real> {
 public:
  RingWork(Scheme scheme, const Call& call, const Group& group, int threads)
      : WorkOf<Real>(scheme, call, group, threads, holdings(scheme, call, group.size), pieces(scheme, call, group.size),
                     true),
        laps_(laps_of(scheme, call, group.size)) {
    // Two parts are under way at most: one that is computed with and sent on, one that comes in.
    const int needed = std::min(group.size - 1, 2);
    std::size_t largest = 0;
    for (int rank = 0; rank < group.size; ++rank) {
      for (const Lap& lap : laps_) largest = std::max(largest, bytes_of_lap(lap, rank));
    }
    for (int n = 0; n < needed; ++n) buffers_[n].resize(largest);
  }

  std::size_t bytes() const override { return WorkOf<Real>::bytes() + buffers_[0].size() + buffers_[1].size(); }

 protected:
  void attend() override {
    this->attention_.begin();
    for (const Lap& lap : laps_) go_round(lap);
    this->attention_.finish();
  }

 private:
  static std::vector<Holding> holdings(Scheme scheme, const Call& call, int ranks) {
    std::vector<Holding> list;
    for (int rank = 0; rank < ranks; ++rank) list.push_back(holding_of(scheme, call, rank, ranks));
    return list;
  }
  static std::vector<Piece> pieces(Scheme scheme, const Call& call, int ranks) {
    std::vector<Piece> list;
    for (const Holding& holding : holdings(scheme, call, ranks))
      list.push_back({holding.query_heads, holding.queries, whole(call.key_length)});
    return list;
  }

  /// Rows of keys of a lap, all heads of it, in the part of a rank.
  std::int64_t rows_of_lap(const Lap& lap, int rank) const {
    return (lap.batches.last - lap.batches.first) * (lap.groups.last - lap.groups.first) *
           length_of(this->share_.holding(rank).keys);
  }
  std::size_t key_bytes(const Lap& lap, int rank) const {
    return static_cast<std::size_t>(rows_of_lap(lap, rank) * this->call_.key_dim) * size_of(this->call_.dtype);
  }
  std::size_t bytes_of_lap(const Lap& lap, int rank) const {
    return key_bytes(lap, rank) +
           static_cast<std::size_t>(rows_of_lap(lap, rank) * this->call_.value_dim) * size_of(this->call_.dtype);
  }

  void go_round(const Lap& lap) {
    const int rank = this->transport_.rank(), ranks = this->transport_.size();
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    const std::int64_t heads_before = lap.batches.first * this->call_.key_heads + lap.groups.first;
    const std::int64_t rows_before = heads_before * length_of(this->share_.holding().keys);
    const auto width = static_cast<std::int64_t>(size_of(this->call_.dtype));
    const std::byte* k = this->share_.k.data() + rows_before * this->call_.key_dim * width;
    const std::byte* v = this->share_.v.data() + rows_before * this->call_.value_dim * width;
    for (int step = 0; step < ranks; ++step) {
      const int owner = (rank - step + ranks) % ranks, owner_of_next = (owner - 1 + ranks) % ranks;
      std::vector<std::byte>& incoming = buffers_[step % 2];
      if (step + 1 < ranks) {
        // Keys of the next part, then its values.
        const std::size_t keys = key_bytes(lap, owner_of_next), all = bytes_of_lap(lap, owner_of_next);
        this->transport_.receive(before, std::span(incoming).first(keys));
        this->transport_.receive(before, std::span(incoming).subspan(keys, all - keys));
        this->transport_.send(next, {k, key_bytes(lap, owner)});
        this->transport_.send(next, {v, bytes_of_lap(lap, owner) - key_bytes(lap, owner)});
      }
      this->attention_.attend({k, v, this->share_.holding(owner).keys, lap.batches, lap.groups},
                              [&] { this->transport_.progress(); });
      this->transport_.wait();
      k = incoming.data();
      v = incoming.data() + key_bytes(lap, owner_of_next);
    }
  }

  const std::vector<Lap> laps_;
  std::array<std::vector<std::byte>, 2> buffers_;
};

}  // namespace attest::ring

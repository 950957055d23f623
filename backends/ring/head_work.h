// Runs of the sequence become heads by an all-to-all of q, k and v; each rank attends for its heads over the whole
// sequence; and a second all-to-all makes runs of the results. A key head goes to every rank that has one of its query
// heads, so that there may be fewer of them than ranks.
#pragma once

#include "backends/ring/work.h"

namespace attest::ring {

template <class Real>
class HeadWork : public WorkOf<Real> {
 public:
  HeadWork(const Call& call, const Group& group, int threads)
      : WorkOf<Real>(Scheme::head_parallel, call, group, threads) {
    const PositionSpan heads = this->own_piece().heads, groups = key_heads_of(call, group.rank, group.size);
    const std::size_t width = size_of(call.dtype);
    const auto numbers = [&](std::int64_t heads_held, std::int64_t rows, std::int64_t columns) {
      return static_cast<std::size_t>(call.batch * heads_held * rows * columns);
    };
    q_.resize(numbers(count(heads), call.query_length, call.key_dim) * width);
    k_.resize(numbers(count(groups), call.key_length, call.key_dim) * width);
    v_.resize(numbers(count(groups), call.key_length, call.value_dim) * width);
    const std::int64_t rows = length_of(this->local_.shard().queries);
    out_.resize(numbers(call.query_heads, rows, call.value_dim));
    lse_.resize(numbers(call.query_heads, rows, 1));
    this->attention_.take_queries_from(q_);
  }

  std::size_t bytes() const override {
    return WorkOf<Real>::bytes() + q_.size() + k_.size() + v_.size() + (out_.size() + lse_.size()) * sizeof(Real);
  }

 protected:
  void attend() override {
    const Call& call = this->call_;
    const auto width = static_cast<std::int64_t>(size_of(call.dtype));
    const auto query_heads = [&](int rank) { return heads_of(call.query_heads, rank, ranks()); };
    const auto key_heads = [&](int rank) { return key_heads_of(call, rank, ranks()); };
    const auto queries = [&](int rank) { return this->local_.shard(rank).queries; };
    const auto keys = [&](int rank) { return this->local_.shard(rank).keys; };
    to_heads({call.query_heads, call.query_length, call.key_dim * width}, query_heads, queries, this->local_.q, q_);
    to_heads({call.key_heads, call.key_length, call.key_dim * width}, key_heads, keys, this->local_.k, k_);
    to_heads({call.key_heads, call.key_length, call.value_dim * width}, key_heads, keys, this->local_.v, v_);

    this->attention_.begin();
    this->attention_.attend({k_.data(), v_.data(), whole(call.key_length), {0, call.batch}, key_heads(rank())}, [] {});
    std::exception_ptr failure;
    try {
      this->attention_.finish();
    } catch (...) {
      failure = std::current_exception();  // other ranks wait for their rows all the same
    }
    const auto real = static_cast<std::int64_t>(sizeof(Real));
    to_rows({call.query_heads, call.query_length, call.value_dim * real}, writable_bytes_of(this->attention_.out),
            writable_bytes_of(out_));
    to_rows({call.query_heads, call.query_length, real}, writable_bytes_of(this->attention_.lse),
            writable_bytes_of(lse_));
    if (failure) std::rethrow_exception(failure);
  }

  Piece result_piece(int rank) const override {
    return {{0, this->call_.query_heads}, this->local_.shard(rank).queries, {}};
  }
  const std::vector<Real>& result_out() const override { return out_; }
  const std::vector<Real>& result_lse() const override { return lse_; }

 private:
  /// A tensor B, heads, rows of so many bytes.
  struct Extent {
    std::int64_t heads, rows, width;
  };
  static std::int64_t count(const PositionSpan& span) { return span.last - span.first; }

  int rank() const { return this->transport_.rank(); }
  int ranks() const { return this->transport_.size(); }

  /// Rows [spans] of some heads of B, heads, rows of `width` bytes, between the tensor and a packed buffer.
  template <class Copy>
  void each_run(const Extent& of, const PositionSpan& heads, const Spans& spans, const Copy& copy) const {
    for (std::int64_t b = 0; b < this->call_.batch; ++b) {
      for (std::int64_t h = heads.first; h < heads.last; ++h) {
        for (const PositionSpan& span : spans)
          copy(((b * of.heads + h) * of.rows + span.first) * of.width, count(span) * of.width);
      }
    }
  }

  void pack(const Extent& of, const PositionSpan& heads, const Spans& spans, const std::byte* from,
            std::vector<std::byte>& packed) const {
    packed.clear();
    each_run(of, heads, spans,
             [&](std::int64_t at, std::int64_t bytes) { packed.insert(packed.end(), from + at, from + at + bytes); });
  }
  void unpack(const Extent& of, const PositionSpan& heads, const Spans& spans, const std::vector<std::byte>& packed,
              std::byte* to) const {
    const std::byte* from = packed.data();
    each_run(of, heads, spans, [&](std::int64_t at, std::int64_t bytes) {
      std::copy_n(from, bytes, to + at);
      from += bytes;
    });
  }

  /// Exchanges what pack_for(rank) packs for what unpack_from(rank, ...) takes; own parts are not sent.
  template <class Pack, class Size, class Unpack>
  void exchange(const Pack& pack_for, const Size& size_from, const Unpack& unpack_from) {
    std::vector<std::vector<std::byte>> outgoing(static_cast<std::size_t>(ranks())), incoming(outgoing.size());
    for (int other = 0; other < ranks(); ++other) {
      const auto n = static_cast<std::size_t>(other);
      pack_for(other, outgoing[n]);
      if (other == rank()) continue;
      incoming[n].resize(static_cast<std::size_t>(size_from(other)));
      this->transport_.receive(other, incoming[n]);
      this->transport_.send(other, outgoing[n]);
    }
    this->transport_.wait();
    for (int other = 0; other < ranks(); ++other) {
      const auto n = static_cast<std::size_t>(other);
      unpack_from(other, other == rank() ? outgoing[n] : incoming[n]);
    }
  }

  /// `shard`: B, all heads, own rows. `full`: B, own heads, all rows.
  template <class Heads, class Rows>
  void to_heads(const Extent& of, const Heads& heads, const Rows& rows, const std::vector<std::byte>& shard,
                std::vector<std::byte>& full) {
    const PositionSpan own = heads(rank());
    const std::int64_t own_rows = length_of(rows(rank()));
    exchange(
        [&](int to, std::vector<std::byte>& packed) {
          pack({of.heads, own_rows, of.width}, heads(to), whole(own_rows), shard.data(), packed);
        },
        [&](int from) { return this->call_.batch * count(own) * length_of(rows(from)) * of.width; },
        [&](int from, const std::vector<std::byte>& packed) {
          unpack({count(own), of.rows, of.width}, {0, count(own)}, rows(from), packed, full.data());
        });
  }

  /// `full`: B, own query heads, all rows. `shard`: B, all query heads, own rows.
  void to_rows(const Extent& of, std::span<std::byte> full, std::span<std::byte> shard) {
    const auto heads = [&](int of_rank) { return heads_of(of.heads, of_rank, ranks()); };
    const auto rows = [&](int of_rank) { return this->local_.shard(of_rank).queries; };
    const std::int64_t own_rows = length_of(rows(rank()));
    exchange(
        [&](int to, std::vector<std::byte>& packed) {
          pack({count(heads(rank())), of.rows, of.width}, {0, count(heads(rank()))}, rows(to), full.data(), packed);
        },
        [&](int from) { return this->call_.batch * count(heads(from)) * own_rows * of.width; },
        [&](int from, const std::vector<std::byte>& packed) {
          unpack({of.heads, own_rows, of.width}, heads(from), whole(own_rows), packed, shard.data());
        });
  }

  std::vector<std::byte> q_, k_, v_;  ///< B, own heads, all rows, features
  std::vector<Real> out_, lse_;       ///< B, all heads, own rows
};

}  // namespace attest::ring

// One plan of a distributed backend as each rank of the group has it: all call the same steps together.
#pragma once

#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "backends/ring/local_tensors.h"
#include "backends/ring/part_attention.h"
#include "backends/ring/scheme.h"
#include "backends/ring/traffic.h"
#include "backends/ring/transport.h"
#include "backends/support/host_results.h"

namespace attest::ring {

class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  /// `inputs` are given on rank 0 alone.
  virtual void upload(const Inputs* inputs) = 0;
  virtual void run() = 0;
  /// Brings the results to rank 0, where `outputs` are given.
  virtual void download(const Inputs* inputs, const Outputs* outputs) = 0;
  /// Bytes that this rank holds.
  virtual std::size_t bytes() const = 0;
};

/// Which rows a rank has results of, and for which keys it has the stages of the scores.
struct Piece {
  PositionSpan heads;
  Spans queries, keys;
};

/// Of every rank, in order.
std::vector<Piece> pieces_of(Scheme scheme, const Call& call, int ranks);

/// What the schemes have in common.
template <class Real>
class WorkOf : public Work {
 public:
  void upload(const Inputs* inputs) final { local_.scatter(inputs, transport_); }

  void run() final {
    const std::int64_t before = transport_.bytes_sent();
    gathered_ = false;
    attend();
    const std::int64_t sent = transport_.bytes_sent() - before;
    const std::int64_t expected = bytes_sent_by(scheme_, call_, transport_.rank(), transport_.size());
    if (sent != expected) {
      throw BackendError("sent " + std::to_string(sent) + " bytes where the scheme sends " + std::to_string(expected));
    }
  }

  void download(const Inputs* inputs, const Outputs* outputs) final {
    if (!gathered_) gather();
    gathered_ = true;
    if (results_) results_->download(*inputs, *outputs);
  }

  std::size_t bytes() const override { return local_.bytes() + attention_.workspace_bytes(); }

 protected:
  WorkOf(Scheme scheme, const Call& call, const Group& group, int threads)
      : scheme_(scheme),
        call_(call),
        transport_(group),
        local_(call_, shards_of(scheme, call, group.size), group.rank),
        pieces_(pieces_of(scheme, call, group.size)),
        attention_(call_, local_, threads, own_piece().heads, own_piece().queries, own_piece().keys,
                   scheme != Scheme::key_parallel || group.rank == 0) {
    if (group.rank == 0) results_ = std::make_unique<support::HostResults<Real>>(call_);
  }

  /// Fills results of the rows that result_piece() names.
  virtual void attend() = 0;
  virtual const std::vector<Real>& result_out() const { return attention_.out; }
  virtual const std::vector<Real>& result_lse() const { return attention_.lse; }
  /// Rows whose results a rank has when attend() is through; usually those of its piece.
  virtual Piece result_piece(int rank) const { return pieces_[static_cast<std::size_t>(rank)]; }

  const Piece& own_piece() const { return pieces_[static_cast<std::size_t>(transport_.rank())]; }

  Scheme scheme_;
  const Call call_;
  Transport transport_;
  LocalTensors local_;
  std::vector<Piece> pieces_;  ///< of every rank: what it attends
  PartAttention<Real> attention_;

 private:
  /// `width` numbers a row of every rank's rows; place(b, h, i, numbers) on rank 0.
  template <class Place>
  void gather_rows(const std::vector<Real>& own, const std::function<Piece(int)>& piece_of,
                   const std::function<std::int64_t(const Piece&)>& width_of, const Place& place) {
    if (transport_.rank() > 0) {
      transport_.send(0, bytes_of(own));
      transport_.wait();
      return;
    }
    std::vector<Real> received;
    for (int rank = 0; rank < transport_.size(); ++rank) {
      const Piece piece = piece_of(rank);
      const std::int64_t width = width_of(piece);
      const Real* from = own.data();
      if (rank > 0) {
        received.resize(static_cast<std::size_t>(call_.batch * (piece.heads.last - piece.heads.first) *
                                                 length_of(piece.queries) * width));
        transport_.receive(rank, writable_bytes_of(received));
        transport_.wait();
        from = received.data();
      }
      for (std::int64_t b = 0; b < call_.batch; ++b) {
        for (std::int64_t h = piece.heads.first; h < piece.heads.last; ++h) {
          for (const PositionSpan& span : piece.queries) {
            for (std::int64_t i = span.first; i < span.last; ++i, from += width)
              place(piece, results_->row(b, h, i), from);
          }
        }
      }
    }
  }

  void gather() {
    const auto rows = [&](int rank) { return result_piece(rank); };
    gather_rows(
        result_out(), rows, [&](const Piece&) { return call_.value_dim; },
        [&](const Piece&, std::size_t row, const Real* from) {
          std::copy_n(from, call_.value_dim, results_->out_row(row));
        });
    gather_rows(
        result_lse(), rows, [](const Piece&) { return 1; },
        [&](const Piece&, std::size_t row, const Real* from) { results_->lse[row] = *from; });
    if (call_.wants_scores()) gather_stages();
  }

  void gather_stages() {
    const auto gather_stage = [&](const std::vector<Real>& own, std::initializer_list<std::vector<Real>*> stages) {
      gather_rows(
          own, [&](int rank) { return pieces_[static_cast<std::size_t>(rank)]; },
          [](const Piece& piece) { return length_of(piece.keys); },
          [&](const Piece& piece, std::size_t row, const Real* from) {
            for (const PositionSpan& span : piece.keys) {
              for (std::vector<Real>* stage : stages) {
                if (Real* to = results_->stage_row(*stage, row))
                  std::copy_n(from, span.last - span.first, to + span.first);
              }
              from += span.last - span.first;
            }
          });
    };
    // On rank 0 there are lists to fill; elsewhere none.
    std::vector<Real> none;
    support::HostResults<Real>* to = results_.get();
    if (call_.wants(Output::raw)) gather_stage(attention_.raw, {to ? &to->raw : &none});
    if (call_.wants(Output::capped)) gather_stage(attention_.capped, {to ? &to->capped : &none});
    if (!call_.wants(Output::biased) && !call_.wants(Output::weights)) return;
    gather_stage(attention_.biased, {to ? &to->biased : &none, to ? &to->weights : &none});
    if (!to || to->weights.empty()) return;
    const Inputs extras = local_.head_inputs();
    const support::ScoreOptions<Real> options(call_, extras);
    for (std::int64_t row = 0; row < call_.batch * call_.query_heads * call_.query_length; ++row)
      options.softmax(to->stage_row(to->weights, static_cast<std::size_t>(row)),
                      row / call_.query_length % call_.query_heads);
  }

  std::unique_ptr<support::HostResults<Real>> results_;  ///< on rank 0
  bool gathered_ = false;
};

/// Makes this rank's part of a plan; all ranks make theirs together.
std::unique_ptr<Work> make_work(Scheme scheme, const Call& call, const Group& group, int threads);

}  // namespace attest::ring

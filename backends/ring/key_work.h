// Keys stay where they are: each rank attends with all queries to its own, and rank 0 merges the results. What
// generating tokens asks for, where few queries meet many keys.
#pragma once

#include "backends/ring/work.h"

namespace attest::ring {

template <class Real>
class KeyWork : public WorkOf<Real> {
 public:
  KeyWork(const Call& call, const Group& group, int threads)
      : WorkOf<Real>(Scheme::key_parallel, call, group, threads) {
    if (group.rank > 0) return;
    out_.resize(this->attention_.out.size());
    lse_.resize(this->attention_.lse.size());
  }

  std::size_t bytes() const override { return WorkOf<Real>::bytes() + (out_.size() + lse_.size()) * sizeof(Real); }

 protected:
  void attend() override {
    const LocalTensors& local = this->local_;
    PartAttention<Real>& attention = this->attention_;
    attention.begin();
    attention.attend(
        {local.k.data(), local.v.data(), local.shard().keys, {0, this->call_.batch}, {0, this->call_.key_heads}},
        [] {});
    std::exception_ptr failure;
    if (this->transport_.rank() > 0) {
      try {
        attention.finish(false);
      } catch (...) {
        failure = std::current_exception();  // rank 0 waits for numbers all the same
      }
      this->transport_.send(0, bytes_of(attention.out));
      this->transport_.send(0, bytes_of(attention.lse));
      this->transport_.wait();
      if (failure) std::rethrow_exception(failure);
      return;
    }
    for (int rank = 1; rank < this->transport_.size(); ++rank) {
      this->transport_.receive(rank, writable_bytes_of(out_));
      this->transport_.receive(rank, writable_bytes_of(lse_));
      this->transport_.wait();
      attention.absorb(out_, lse_);
    }
    attention.finish();
  }

  Piece result_piece(int rank) const override { return rank == 0 ? this->pieces_.front() : Piece{{0, 0}, {}, {}}; }
  const std::vector<Real>& result_out() const override {
    return this->transport_.rank() == 0 ? this->attention_.out : none_;
  }
  const std::vector<Real>& result_lse() const override {
    return this->transport_.rank() == 0 ? this->attention_.lse : none_;
  }

 private:
  std::vector<Real> out_, lse_;  ///< of another rank, on rank 0
  const std::vector<Real> none_;
};

}  // namespace attest::ring

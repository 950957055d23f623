// Ranks that are threads of the test: messages between them without MPI.
#pragma once

#include <barrier>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/mpi/ranks.h"

namespace attest {

/// What the ranks of one job share.
class ThreadJob {
 public:
  explicit ThreadJob(int size) : said(static_cast<std::size_t>(size)), boxes(said.size()), together(size) {}

  struct Box {
    std::mutex mutex;
    std::condition_variable came;
    std::deque<Ranks::Message> messages;
  };
  std::vector<std::string> said;
  std::deque<Box> boxes;
  std::barrier<> together;
};

class ThreadRanks : public Ranks {
 public:
  ThreadRanks(ThreadJob& job, int rank) : job_(job), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(job_.said.size()); }
  int local_rank() const override { return rank_; }
  const std::vector<std::filesystem::path>& libraries() const override { return libraries_; }

  void send(int to, const std::string& bytes) override {
    ThreadJob::Box& box = job_.boxes.at(static_cast<std::size_t>(to));
    const std::lock_guard lock(box.mutex);
    box.messages.push_back({rank_, bytes});
    box.came.notify_one();
  }
  std::optional<Message> receive(std::chrono::microseconds patience) override {
    ThreadJob::Box& box = job_.boxes.at(static_cast<std::size_t>(rank_));
    std::unique_lock lock(box.mutex);
    if (!box.came.wait_for(lock, patience, [&] { return !box.messages.empty(); })) return std::nullopt;
    Message first = box.messages.front();
    box.messages.pop_front();
    return first;
  }
  std::vector<std::string> all(const std::string& mine) override {
    job_.said[static_cast<std::size_t>(rank_)] = mine;
    job_.together.arrive_and_wait();
    std::vector<std::string> said = job_.said;
    job_.together.arrive_and_wait();
    return said;
  }
  const Group& split(int) override { throw std::logic_error("threads make no groups"); }
  void take_part(const Context&, std::span<const BackendEntry>) override {}
  void release() override {}
  [[noreturn]] void abort(int) override { throw std::logic_error("a rank was aborted"); }

 private:
  ThreadJob& job_;
  int rank_;
  std::vector<std::filesystem::path> libraries_;
};

/// Runs `body` on each of `size` ranks, and throws what rank 0 threw, or else the first other.
inline void on_ranks(int size, const std::function<void(Ranks&)>& body) {
  ThreadJob job(size);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(job, rank);
      try {
        body(ranks);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace attest

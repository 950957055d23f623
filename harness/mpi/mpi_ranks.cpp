#include "harness/mpi/mpi_ranks.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <thread>

#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

constexpr int kTag = 1;
/// Between two looks for a message: the longer nothing came, the longer it is.
constexpr std::chrono::microseconds kShortestRest{50}, kLongestRest{400};

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    const std::vector<std::filesystem::path> before = loaded_libraries();
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    // A communicator of its own: what backends send each other is none of the harness's.
    MPI_Comm_dup(MPI_COMM_WORLD, &job_);
    MPI_Comm_rank(job_, &rank_);
    MPI_Comm_size(job_, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(job_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_free(&local);
    const std::vector<std::filesystem::path> now = loaded_libraries();
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(libraries_));
    if (level < MPI_THREAD_MULTIPLE) {
      MPI_Finalize();
      throw UserError("this MPI was built without threads (MPI_THREAD_MULTIPLE), which a run on ranks needs");
    }
  }

  ~MpiRanks() override { MPI_Finalize(); }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  const std::vector<std::filesystem::path>& libraries() const override { return libraries_; }

  void send(int to, const std::string& bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(bytes.data(), count_of(bytes), MPI_BYTE, to, kTag, job_, &request);
    int done = 0;
    for (std::chrono::microseconds rest = kShortestRest;; rest = std::min(2 * rest, kLongestRest)) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) return;
      std::this_thread::sleep_for(rest);
    }
  }

  std::optional<Message> receive(std::chrono::microseconds patience) override {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;; rest_ = std::min(2 * rest_, kLongestRest)) {
      int there = 0, bytes = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kTag, job_, &there, &status);
      if (there) {
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(bytes), '\0')};
        MPI_Recv(message.bytes.data(), bytes, MPI_BYTE, message.from, kTag, job_, MPI_STATUS_IGNORE);
        rest_ = kShortestRest;
        return message;
      }
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      std::this_thread::sleep_for(std::min(rest_, left));
    }
  }

  std::vector<std::string> all(const std::string& mine) override {
    const int length = count_of(mine);
    std::vector<int> lengths(static_cast<std::size_t>(size_)), places(lengths.size());
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, job_);
    for (std::size_t n = 1; n < places.size(); ++n) places[n] = places[n - 1] + lengths[n - 1];
    std::string together(static_cast<std::size_t>(places.back() + lengths.back()), '\0');
    MPI_Allgatherv(mine.data(), length, MPI_BYTE, together.data(), lengths.data(), places.data(), MPI_BYTE, job_);
    std::vector<std::string> texts;
    for (std::size_t n = 0; n < places.size(); ++n)
      texts.push_back(together.substr(static_cast<std::size_t>(places[n]), static_cast<std::size_t>(lengths[n])));
    return texts;
  }

  const Group& split(int ranks_per_case) override {
    MPI_Comm_split(job_, rank_ / ranks_per_case, rank_, &together_);
    group_ = {rank_ % ranks_per_case, ranks_per_case, &together_};
    MPI_Comm firsts = MPI_COMM_NULL;
    MPI_Comm_split(job_, group_.rank == 0 ? 0 : MPI_UNDEFINED, rank_, &firsts);
    job_ = firsts;
    if (group_.rank == 0) {
      MPI_Comm_rank(job_, &rank_);
      MPI_Comm_size(job_, &size_);
    }
    return group_;
  }
  void take_part(const Context& context, std::span<const BackendEntry> backends) override {
    attest::take_part(context, backends);
  }
  void release() override { attest::release(group_); }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  static int count_of(const std::string& bytes) {
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw std::length_error("a message between ranks is longer than 2 GiB");
    return static_cast<int>(bytes.size());
  }

  MPI_Comm job_ = MPI_COMM_NULL, together_ = MPI_COMM_NULL;
  Group group_;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  std::vector<std::filesystem::path> libraries_;
  std::chrono::microseconds rest_ = kShortestRest;
};

}  // namespace

std::unique_ptr<Ranks> make_mpi_ranks() { return std::make_unique<MpiRanks>(); }

}  // namespace attest

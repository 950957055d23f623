#include "backends/ring/transport.h"

#include <algorithm>

namespace attest::ring {
namespace {

constexpr int kTag = 16;                             // lower ones are those of backends/support/group
constexpr std::size_t kMost = std::size_t{1} << 30;  // of one message: MPI counts in int

}  // namespace

void Transport::send(int to, std::span<const std::byte> bytes) {
  bytes_sent_ += static_cast<std::int64_t>(bytes.size());
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMost, bytes.size()))) {
    const int count = static_cast<int>(std::min(kMost, bytes.size()));
    MPI_Isend(bytes.data(), count, MPI_BYTE, to, kTag, communicator(), &under_way_.emplace_back());
  }
}

void Transport::receive(int from, std::span<std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMost, bytes.size()))) {
    const int count = static_cast<int>(std::min(kMost, bytes.size()));
    MPI_Irecv(bytes.data(), count, MPI_BYTE, from, kTag, communicator(), &under_way_.emplace_back());
  }
}

void Transport::progress() {
  if (under_way_.empty()) return;
  int done = 0;
  MPI_Testall(static_cast<int>(under_way_.size()), under_way_.data(), &done, MPI_STATUSES_IGNORE);
  if (done) under_way_.clear();
}

void Transport::wait() {
  if (under_way_.empty()) return;
  MPI_Waitall(static_cast<int>(under_way_.size()), under_way_.data(), MPI_STATUSES_IGNORE);
  under_way_.clear();
}

}  // namespace attest::ring

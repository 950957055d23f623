// Bytes between the ranks of a group, and how many of them were sent.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/group.h"

namespace attest::ring {

/// Transfers that have begun. What they read and write stays where it is until wait().
class Transport {
 public:
  explicit Transport(const Group& group) : group_(group) {}
  ~Transport() { wait(); }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const Group& group() const { return group_; }
  int rank() const { return group_.rank; }
  int size() const { return group_.size; }

  /// Both sides name the same number of bytes, of any size; none travel where it is 0. Transfers between two ranks
  /// arrive in the order in which they began.
  void send(int to, std::span<const std::byte> bytes);
  void receive(int from, std::span<std::byte> bytes);

  /// Lets transfers go on while this rank computes: MPI moves large ones in steps, when it is called.
  void progress();
  void wait();

  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  MPI_Comm communicator() const { return *static_cast<const MPI_Comm*>(group_.communicator); }

  const Group& group_;
  std::vector<MPI_Request> under_way_;
  std::int64_t bytes_sent_ = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}
template <class T>
std::span<std::byte> writable_bytes_of(std::vector<T>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

}  // namespace attest::ring

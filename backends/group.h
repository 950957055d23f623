// The ranks that run one case together, for backends whose attention spans processes.
//
// Rank 0 of a group runs the harness and creates backends, with the group in their Context. The other ranks wait in
// take_part(): there they do their part of the uploads, runs and downloads of rank 0's distributed backends, until rank
// 0 releases them. Other backends ignore the group.
#pragma once

#include <cstddef>
#include <span>

#include "backends/backend.h"

namespace attest {

struct Group {
  int rank = 0, size = 1;
  /// Points to an MPI_Comm that holds these ranks and no others, in this order, and through which nobody else sends.
  /// MPI was initialised for MPI_THREAD_MULTIPLE: a plan is not always used by the thread that made it. The group and
  /// what it points to outlive every backend that was made with it.
  const void* communicator = nullptr;
};

/// A distributed backend on a rank above 0: its factory gets a Context with that rank, and its class derives from this,
/// too.
class GroupMember {
 public:
  GroupMember() = default;
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;
  virtual ~GroupMember() = default;

  /// This rank's part of one step of rank 0's backend, which sent the message. What it throws becomes a BackendError
  /// on rank 0; until then it has sent and received whatever the other ranks wait for.
  virtual void take_part(std::span<const std::byte> message) = 0;
};

/// For ranks above 0 of context.group, which is set. Returns when rank 0 calls release(). `backends` are those from
/// which rank 0 makes its own; what it makes is made here with its threads, and `context` with its device. While
/// nothing is to be done the process sleeps rather than spins.
void take_part(const Context& context, std::span<const BackendEntry> backends);

/// For rank 0, once, when its backends are gone: ends take_part() on all others.
void release(const Group& group);

}  // namespace attest

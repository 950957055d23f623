#include "backends/support/group/wire.h"

#include <mpi.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace attest::support {
namespace {

constexpr int kLetter = 1, kAnswer = 2;  // tags; those of backends begin at 16
constexpr std::size_t kHead = sizeof(Verb) + sizeof(std::uint64_t);

MPI_Comm communicator(const Group& group) { return *static_cast<const MPI_Comm*>(group.communicator); }

/// A message from `rank` that can be received, with its size. Waits without pause at first, for what is on its way, and
/// then with longer and longer naps: a core that waits for hours is lent to those that compute.
MPI_Message await_message(const Group& group, int rank, int tag, int& bytes) {
  using std::chrono::microseconds;
  constexpr int kBusyTries = 100;
  constexpr microseconds kLongestNap{1000};
  MPI_Message message{};
  MPI_Status status{};
  microseconds nap{10};
  for (int tries = 0, there = 0;; ++tries) {
    MPI_Improbe(rank, tag, communicator(group), &there, &message, &status);
    if (there) break;
    if (tries < kBusyTries) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestNap);
  }
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  return message;
}

}  // namespace

void send_letter(const Group& group, Verb verb, std::uint64_t member, std::span<const std::byte> content) {
  std::vector<std::byte> bytes(kHead + content.size());
  std::memcpy(bytes.data(), &verb, sizeof verb);
  std::memcpy(bytes.data() + sizeof verb, &member, sizeof member);
  if (!content.empty()) std::memcpy(bytes.data() + kHead, content.data(), content.size());
  for (int rank = 1; rank < group.size; ++rank) {
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, kLetter, communicator(group));
  }
}

Letter receive_letter(const Group& group) {
  int size = 0;
  MPI_Message message = await_message(group, 0, kLetter, size);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  MPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  Letter letter;
  std::memcpy(&letter.verb, bytes.data(), sizeof letter.verb);
  std::memcpy(&letter.member, bytes.data() + sizeof letter.verb, sizeof letter.member);
  letter.content.assign(bytes.begin() + kHead, bytes.end());
  return letter;
}

void send_answer(const Group& group, const std::string& failure) {
  MPI_Send(failure.data(), static_cast<int>(failure.size()), MPI_CHAR, 0, kAnswer, communicator(group));
}

std::vector<std::string> receive_answers(const Group& group) {
  std::vector<std::string> failures;
  for (int rank = 1; rank < group.size; ++rank) {
    int size = 0;
    MPI_Message message = await_message(group, rank, kAnswer, size);
    std::string failure(static_cast<std::size_t>(size), '\0');
    MPI_Mrecv(failure.data(), size, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    if (!failure.empty()) failures.push_back("rank " + std::to_string(rank) + ": " + failure);
  }
  return failures;
}

}  // namespace attest::support

// The processes of one job, which work on one command together and send each other messages. Rank 0 has the reports.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/group.h"

namespace attest {

class Ranks {
 public:
  struct Message {
    int from = 0;
    std::string bytes;
  };

  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Among the ranks on this machine.
  virtual int local_rank() const = 0;
  /// The shared libraries that joining has loaded, sorted: no verdict depends on them.
  virtual const std::vector<std::filesystem::path>& libraries() const = 0;

  /// Messages of one sender arrive in the order in which they were sent. Returns when `bytes` may be changed, which may
  /// be when they were received.
  virtual void send(int to, const std::string& bytes) = 0;
  /// The next message of whichever rank, waited for at most as long; it rests meanwhile.
  virtual std::optional<Message> receive(std::chrono::microseconds patience) = 0;
  /// What each rank says, by rank. All ranks take part.
  virtual std::vector<std::string> all(const std::string& mine) = 0;

  /// Splits the job into groups of so many ranks, neighbours by rank, of which size() is a multiple; all ranks take
  /// part. From then on all of the above is of the ranks that are the first of a group; the others call take_part() and
  /// nothing else. The group lives as long as this object.
  virtual const Group& split(int ranks_per_case) = 0;
  /// Of a rank that is not the first of its group: does its part of distributed backends (backends/group.h) until it is
  /// released.
  virtual void take_part(const Context& context, std::span<const BackendEntry> backends) = 0;
  /// Of the first of a group, when its backends are gone.
  virtual void release() = 0;

  /// Ends all ranks at once.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace attest

// Rank 0's end of a distributed backend: its members on the other ranks of the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "backends/group.h"

namespace attest::support {

/// The group of a backend that needs one. Throws BackendUnavailable, with the command to type, where there is none of
/// at least 2 ranks.
const Group& needed_group(const Context& context);

/// One backend's members. For rank 0; used by one thread at a time.
class Members {
 public:
  /// Makes the backend called `backend` on every other rank. Throws BackendUnavailable when one can't.
  Members(const Context& context, std::string_view backend);
  /// They are given up.
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  const Group& group() const { return group_; }

  /// Sends the message to every member, does this rank's part meanwhile and waits for all. Throws BackendError with the
  /// failures of all ranks, also where `own` throws: like a member it has sent and received by then what others wait
  /// for.
  void together(std::span<const std::byte> message, const std::function<void()>& own);

 private:
  const Group& group_;
  std::uint64_t member_;
};

}  // namespace attest::support

// What travels between rank 0 and the members of its backends: a kind, the member's number and some bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/group.h"

namespace attest::support {

enum class Verb : std::uint8_t {
  open,     ///< make a backend: threads, then its name
  tell,     ///< a message for a member
  close,    ///< give a member up; the one kind without an answer, besides
  release,  ///< leave take_part()
};

struct Letter {
  Verb verb = Verb::tell;
  std::uint64_t member = 0;
  std::vector<std::byte> content;
};

/// Rank 0's letter to every other rank.
void send_letter(const Group& group, Verb verb, std::uint64_t member, std::span<const std::byte> content);

/// The next one, on a rank above 0. Sleeps while there is none.
Letter receive_letter(const Group& group);

/// An answer to rank 0: what went wrong, or nothing.
void send_answer(const Group& group, const std::string& failure);

/// Those of all other ranks, as sentences that name the rank; of ranks without a failure there is none.
std::vector<std::string> receive_answers(const Group& group);

}  // namespace attest::support

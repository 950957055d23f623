// Where a worker notes in which step of its backend it is: some bytes of the first page of its shared file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace attest {

/// Where in the page the note stands; a worker's exit message stands before it.
inline constexpr std::size_t kStepAt = 3072, kStepBytes = 64;

class StepNote {
 public:
  /// `page` is the start of the first page, mapped for as long as this is used.
  explicit StepNote(void* page) : at_(static_cast<char*>(page) + kStepAt) {}

  /// The name, where the harness waits for the whole of an answer.
  void write(const char* name) const { std::snprintf(at_, kStepBytes, "%s", name); }
  std::string name() const { return {at_, strnlen(at_, kStepBytes)}; }

  /// Odd while a step is under way, and another number for each.
  std::uint64_t count() const { return counter().load(std::memory_order_relaxed); }

  class Step;

 private:
  std::atomic<std::uint64_t>& counter() const {
    static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(at_ + kStepBytes);
  }

  char* at_;
};

/// A step, from its beginning to its end. In between lies what may be timed: this is two stores and a copied word.
class StepNote::Step {
 public:
  template <std::size_t length>
  Step(StepNote note, const char (&name)[length]) : note_(note) {
    static_assert(length <= kStepBytes);
    std::memcpy(note_.at_, name, length);
    note_.counter().fetch_add(1, std::memory_order_relaxed);
  }
  ~Step() { note_.counter().fetch_add(1, std::memory_order_relaxed); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  StepNote note_;
};

}  // namespace attest

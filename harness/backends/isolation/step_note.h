// Where a worker notes in which step of its backend it is: some bytes of the first page of its shared file.
#pragma once

#include <cstddef>
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

  void write(const char* name) const { std::snprintf(at_, kStepBytes, "%s", name); }
  std::string name() const { return {at_, strnlen(at_, kStepBytes)}; }

 private:
  char* at_;
};

}  // namespace attest

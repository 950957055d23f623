// Which deliberate mistake this process makes (faults.cmake): the number in ATTEST_FAULT, none without it.
#pragma once

#include <csignal>
#include <cstdlib>

namespace attest {

inline bool fault(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("ATTEST_FAULT");
    return text ? std::atoi(text) : 0;
  }();
  return number == chosen;
}

}  // namespace attest

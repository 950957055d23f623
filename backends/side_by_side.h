// A backend that derives from SideBySide, too, promises that its plans may run at the same time, each in a thread of
// its own: no run writes to data that plans share. Other backends run one plan at a time.
#pragma once

#include "backends/backend.h"

namespace attest {

class SideBySide {
 public:
  SideBySide() = default;
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;
  virtual ~SideBySide() = default;

  /// Whether the backend promises this. If so, the harness runs two plans at the same time and checks their results.
  virtual bool runs_side_by_side() const { return true; }
};

inline bool runs_side_by_side(const Backend& backend) {
  const auto* one = dynamic_cast<const SideBySide*>(&backend);
  return one && one->runs_side_by_side();
}

}  // namespace attest

// What a backend is besides whose plans may run at the same time, each in a thread of its own: nothing that a run
// writes belongs to several plans. Backends that say nothing of it are asked for one run at a time.
#pragma once

#include "backends/backend.h"

namespace attest {

class SideBySide {
 public:
  SideBySide() = default;
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;
  virtual ~SideBySide() = default;

  /// Whether it promises so. The harness then runs two plans at the same time and looks at their results.
  virtual bool runs_side_by_side() const { return true; }
};

inline bool runs_side_by_side(const Backend& backend) {
  const auto* one = dynamic_cast<const SideBySide*>(&backend);
  return one && one->runs_side_by_side();
}

}  // namespace attest

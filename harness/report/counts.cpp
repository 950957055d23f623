#include "harness/report/counts.h"

namespace attest {

void Counts::add(const Verdict& v) {
  switch (v.status) {
    case Status::pass: ++pass; break;
    case Status::fail: ++fail; break;
    case Status::crashed: ++crashed; break;
    case Status::timeout: ++timeout; break;
    case Status::refused: ++refused; break;
    case Status::inconclusive: ++inconclusive; break;
    case Status::convention: ++convention; break;
    case Status::weak: ++weak; break;
    case Status::flaky: ++flaky; break;
    case Status::suspect:
      ++suspect;
      waived += !is_failure(v);
      break;
  }
}

}  // namespace attest

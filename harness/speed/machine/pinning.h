// Which processors this process may use.
#pragma once

namespace attest {

/// From now on this thread, and those that it starts, stay on the first `count` processors that it may use. False
/// where there are not so many, or the system refuses.
bool pin_to_processors(int count);

}  // namespace attest

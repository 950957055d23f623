// Which processors this process may use.
#pragma once

#include <vector>

namespace attest {

/// From now on this thread, and those that it starts, stay on the first `count` processors that it may use. False
/// where there are not so many, or the system refuses.
bool pin_to_processors(int count);

/// The numbers of those that this thread may use.
std::vector<int> own_processors();
/// From now on this thread, and what it starts, stays on these. False where the system refuses.
bool pin_to(const std::vector<int>& processors);
/// So many parts of them, of equal size; what doesn't divide is left out. Empty parts where there are too few.
std::vector<std::vector<int>> parts_of(const std::vector<int>& processors, int parts);

}  // namespace attest

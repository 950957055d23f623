// A thread that lives as long as this process.
//
// The system tells a child process of its parent's death when the thread that started the child ends. Whatever starts
// children that must end with this process, and not earlier, does so here.
#pragma once

#include <functional>

namespace attest {

/// Runs `work` on that thread, on the processors that the calling thread has, and waits for it. What it throws is
/// thrown here. May be called by several threads, which wait for each other; not by `work` itself.
void on_lasting_thread(const std::function<void()>& work);

}  // namespace attest

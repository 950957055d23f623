#include "backends/support/opencl/guarded_buffer.h"

#include <algorithm>
#include <vector>

namespace attest::support {
namespace {

/// A multiple of every device's alignment for parts of buffers.
constexpr std::size_t kGuard = 4096;
constexpr cl_uchar kPattern = 0x5A, kNoResult = 0xFF;

}  // namespace

GuardedBuffer::GuardedBuffer(const OpenClDevice& device, std::string what, std::size_t bytes)
    : what_(std::move(what)), bytes_(std::max<std::size_t>(bytes, 16)), whole_(device.allocate(bytes_ + 2 * kGuard)) {
  const cl_buffer_region region{kGuard, bytes_};
  inside_ = checked([&] { return whole_.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region); });
}

void GuardedBuffer::reset(cl::CommandQueue& queue) {
  queue.enqueueFillBuffer(whole_, kPattern, 0, kGuard);
  queue.enqueueFillBuffer(whole_, kNoResult, kGuard, bytes_);
  queue.enqueueFillBuffer(whole_, kPattern, kGuard + bytes_, kGuard);
}

void GuardedBuffer::inspect(cl::CommandQueue& queue) const {
  std::vector<cl_uchar> guard(kGuard);
  for (const bool behind : {false, true}) {
    queue.enqueueReadBuffer(whole_, CL_TRUE, behind ? kGuard + bytes_ : 0, kGuard, guard.data());
    const auto changed = std::find_if(guard.begin(), guard.end(), [](cl_uchar byte) { return byte != kPattern; });
    if (changed == guard.end()) continue;
    const std::ptrdiff_t at = changed - guard.begin();
    throw BackendError("the kernel wrote outside " + what_ + " on the device: " +
                       (behind ? "byte " + std::to_string(at) + " behind it"
                               : "byte " + std::to_string(static_cast<std::ptrdiff_t>(kGuard) - at) + " before it"));
  }
}

}  // namespace attest::support

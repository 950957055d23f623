// Guards around results on an OpenCL device.
#ifdef ATTEST_HAS_OPENCL
#include "backends/support/opencl/guarded_buffer.h"

#include <array>
#include <cmath>

#include "tests/unit/helpers.h"

namespace attest::support {
namespace {

constexpr const char* kSource = "kernel void put(global char* to, long at) { to[at] = 7; }";

/// Whether a kernel that writes at byte `at` of a result of 64 bytes is noticed, and how.
std::string noticed(OpenClDevice& device, std::int64_t at) {
  GuardedBuffer buffer(device, "out", 64);
  buffer.reset(device.queue());
  cl::Kernel kernel(device.build(kSource, ""), "put");
  kernel.setArg(0, buffer.inside());
  kernel.setArg(1, static_cast<cl_long>(at));
  device.enqueue_rows(kernel, 1);
  device.queue().finish();
  try {
    buffer.inspect(device.queue());
  } catch (const BackendError& error) {
    return error.what();
  }
  return "";
}

TEST(GuardedBuffer, WritesOutsideAreNoticed) {
  OpenClDevice device("");
  EXPECT_EQ(noticed(device, 0), "");
  EXPECT_EQ(noticed(device, 63), "");
  EXPECT_EQ(noticed(device, 64), "the kernel wrote outside out on the device: byte 0 behind it");
  EXPECT_EQ(noticed(device, -1), "the kernel wrote outside out on the device: byte 1 before it");
  EXPECT_NE(noticed(device, 2000), "");
}

TEST(GuardedBuffer, EarlierResultsAreGoneAfterAReset) {
  OpenClDevice device("");
  GuardedBuffer buffer(device, "out", 16);
  const std::array<float, 4> result = {1, 2, 3, 4};
  device.queue().enqueueWriteBuffer(buffer.inside(), CL_TRUE, 0, sizeof result, result.data());
  buffer.reset(device.queue());
  std::array<float, 4> read{};
  device.queue().enqueueReadBuffer(buffer.inside(), CL_TRUE, 0, sizeof read, read.data());
  for (float value : read) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace attest::support
#endif

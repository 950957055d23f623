// One OpenCL device with its context, queue and compiled programs. Used by every OpenCL backend.
//
// The C++ bindings throw on any status but CL_SUCCESS; `checked` turns that into a BackendError that names the call.
#pragma once

#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_TARGET_OPENCL_VERSION 120
#include <CL/opencl.hpp>
#include <string>

#include "backends/backend.h"

namespace attest::support {

/// "CL_OUT_OF_RESOURCES" for -5, and so on.
std::string status_name(cl_int status);

template <class Step>
auto checked(const Step& step) -> decltype(step()) {
  try {
    return step();
  } catch (const cl::Error& error) {
    throw BackendError(std::string("OpenCL: ") + error.what() + " gave " + status_name(error.err()));
  }
}

class OpenClDevice {
 public:
  /// A device whose "platform: name" holds `wanted`; empty: $ATTEST_OPENCL_DEVICE, else a GPU before a CPU.
  /// Of several that fit the first, or the one that $ATTEST_OPENCL_NUMBER counts to from 0, round and round.
  /// Throws BackendUnavailable, listing what there is.
  explicit OpenClDevice(const std::string& wanted);

  const cl::Context& context() const { return context_; }
  cl::CommandQueue& queue() { return queue_; }
  const std::string& name() const { return name_; }        ///< "platform: device"
  const std::string& library() const { return library_; }  ///< platform and driver version
  bool is_gpu() const { return is_gpu_; }
  bool has_double() const { return has_double_; }
  std::size_t local_bytes() const { return local_bytes_; }
  std::size_t max_allocation() const { return max_allocation_; }
  std::size_t max_group() const { return max_group_; }  ///< work-items of a work-group
  int compute_units() const { return compute_units_; }
  int native_floats() const { return native_floats_; }  ///< lanes of the native float vector

  /// Compiles, or takes the binary from the cache (cache_folder.h). Throws BackendError with the compiler's log.
  cl::Program build(const std::string& source, const std::string& options) const;

  cl::Buffer allocate(std::size_t bytes) const;

  /// Enqueues one work-item for each of `count` rows, rounded up to whole work-groups of a fixed size: drivers that
  /// compile for each size of work-group would otherwise do so for each count. Kernels return early beyond the count.
  void enqueue_rows(const cl::Kernel& kernel, std::size_t count, cl::Event* event = nullptr);

 private:
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  std::string name_, library_;
  bool is_gpu_ = false, has_double_ = false;
  std::size_t local_bytes_ = 0, max_allocation_ = 0, max_group_ = 0;
  int compute_units_ = 1, native_floats_ = 8;
};

/// Nanoseconds between start and end of an event.
std::chrono::nanoseconds duration_of(const cl::Event& event);

}  // namespace attest::support

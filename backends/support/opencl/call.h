// One attention call on an OpenCL device: its tensors as they lie, the tables that kernels look things up in, its
// results.
//
// Kernels begin with the arguments of COMMON in problem.cl, which set_common() sets in that order.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "backends/support/opencl/device.h"
#include "backends/support/opencl/guarded_buffer.h"

namespace attest::support {

/// The same struct as in problem.cl. All 64 bits wide, so that host and device agree on its layout.
struct DeviceProblem {
  cl_long query_heads, key_heads, group, query_length, key_length, key_dim, value_dim;
  cl_long q[4], k[4], v[4], mask[4];
  cl_long mask_kind;
  cl_long past, page_size, page_stride;
  cl_long has_slopes, has_sinks, has_softcap, dropout;
  cl_long block_rows, block_columns, rows_per_block, keys_per_block;
  cl_ulong seed, drop_below;
  cl_long batch;
};

/// Nothing when the device allocates so many bytes at once; else the sentence "`what` needs ...".
std::optional<Refusal> refuse_allocation(const std::string& what, double bytes, const OpenClDevice& device);

/// What no OpenCL backend can do on this device: doubles, tensors beyond its allocations, inputs of several types.
std::optional<Refusal> refuse_on_device(const Call& problem, const OpenClDevice& device);

/// Compiler options for the problem's types.
std::string type_options(const Call& problem, const OpenClDevice& device);

/// Kernel source that every OpenCL backend begins with: problem.cl.
std::string problem_source();

class DeviceCall {
 public:
  /// Allocates everything but the inputs. `program` was built from problem_source() and more.
  DeviceCall(const Call& problem, OpenClDevice& device, const cl::Program& program);

  /// Copies the inputs as they lie, but for gaps that would be most of a buffer (gaps.h).
  void upload(const Inputs& inputs);
  /// Sets the arguments of COMMON; returns the number of the next one.
  cl_uint set_common(cl::Kernel& kernel) const;
  /// Enqueues what follows the kernel that wrote out and lse: stages of the scores and present keys.
  void enqueue_rest();
  void download(const Outputs& outputs) const;
  /// Copies a result, dense numbers of `type`, to where it belongs. Packed rows are those of queries, or of keys.
  void fetch(const GuardedBuffer& from, const MutableTensor& to, DType type, bool of_keys = false) const;

  const Call& problem() const { return problem_; }
  /// Elements of a result: rows of q times Dv, and so on.
  std::size_t rows() const { return rows_count_; }
  const cl::Buffer& out() const { return out_.inside(); }
  const cl::Buffer& lse() const { return lse_.inside(); }

 private:
  void set_real(cl::Kernel& kernel, cl_uint argument, double value) const;
  void write(cl::Buffer& buffer, std::size_t slot, const void* data, std::size_t bytes);
  void write_tables(const Inputs& inputs);
  std::vector<GuardedBuffer*> results_of_call();

  const Call problem_;
  OpenClDevice& device_;
  DeviceProblem fields_{};
  std::size_t element_, rows_count_, key_rows_;
  cl::Buffer q_, k_, v_, past_k_, past_v_, mask_, ranges_, tables_, small_, blocks_, keep_;
  GuardedBuffer out_, lse_, present_k_, present_v_;
  std::array<GuardedBuffer, 4> stages_;  ///< raw, capped, biased, weights
  std::array<std::size_t, 11> capacity_{};
  cl::Kernel stages_kernel_, present_kernel_;
};

}  // namespace attest::support
